import Foundation
import Glibc

/// Questions to the user. Each answer is one line of standard input, so a script can also write the answers.
package enum Prompt {
    /// Shows a question and reads the answer.
    ///
    /// - Parameters:
    ///   - byDefault: The value that an empty answer means. The question shows this value.
    /// - Returns: The answer without spaces at its ends. `nil` if standard input has ended.
    package static func ask(_ question: String, byDefault: String? = nil) -> String? {
        show(question + (byDefault.map { " [\($0)]" } ?? "") + ": ")
        guard let line = readLine() else { return nil }
        let answer = line.trimmingCharacters(in: .whitespacesAndNewlines)
        return answer.isEmpty ? byDefault ?? "" : answer
    }

    /// Shows a question and reads a secret. A terminal does not show the characters that the user types.
    ///
    /// - Returns: The line. `nil` if standard input has ended.
    package static func askSecret(_ question: String) -> String? {
        show(question + ": ")
        var before = termios()
        guard tcgetattr(STDIN_FILENO, &before) == 0 else { return readLine() }
        var silent = before
        silent.c_lflag &= ~tcflag_t(ECHO)
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent)
        // A signal ends the process and not only this call, so the terminal is also restored before a signal ends the process.
        let shown = before
        let handlers = [SIGINT, SIGTERM, SIGHUP, SIGQUIT].map { number in
            signal(number, SIG_IGN)
            let handler = DispatchSource.makeSignalSource(signal: number, queue: .global())
            handler.setEventHandler {
                var restored = shown
                tcsetattr(STDIN_FILENO, TCSAFLUSH, &restored)
                signal(number, SIG_DFL)
                kill(getpid(), number)
            }
            handler.resume()
            return (number, handler)
        }
        // A stopped process could not hide the characters that the user types after `fg`, so Ctrl-Z has no effect.
        signal(SIGTSTP, SIG_IGN)
        defer {
            for (number, handler) in handlers {
                handler.cancel()
                signal(number, SIG_DFL)
            }
            signal(SIGTSTP, SIG_DFL)
            tcsetattr(STDIN_FILENO, TCSAFLUSH, &before)
            show("\n")
        }
        return readLine()
    }

    /// Writes a question to standard error, because standard output contains only results.
    private static func show(_ text: String) { Output.write(Data(text.utf8), to: STDERR_FILENO) }
}
