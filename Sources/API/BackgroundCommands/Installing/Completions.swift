import ArgumentParser
import Foundation

/// The completion files of shells, in the folders where the shells look for them.
struct Completions {
    let root: any ParsableCommand.Type
    let command: String

    init(_ root: any ParsableCommand.Type, as command: String) { (self.root, self.command) = (root, command) }

    var files: [InstalledFile] {
        [
            // The file is read, not executed.
            InstalledFile("bash-completion/completions/\(command)", script(.bash).replacing(/^#!.*\n+/, with: "")),
            InstalledFile("zsh/site-functions/_\(command)", script(.zsh)),
            InstalledFile("fish/vendor_completions.d/\(command).fish", script(.fish)),
        ]
    }

    /// Returns the script of the library with the command's name replaced. The library generates it for the name of the root
    /// command, and its functions keep that name.
    private func script(_ shell: CompletionShell) -> String {
        let (text, name) = (root.completionScript(for: shell), root._commandName)
        guard name != command else { return text }
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map { line -> String in
            switch shell {
            case .bash where line.hasPrefix("complete "): Self.ending(line, name, command)
            case .zsh where line.hasPrefix("#compdef "): "#compdef \(command)"
            case .fish:
                // Replaces the word itself, and the path of commands that a suggestion is for.
                line.replacingOccurrences(of: "'\(name)'", with: "'\(command)'")
                    .replacingOccurrences(of: " \"\(name)\"", with: " \"\(command)\"")
                    .replacingOccurrences(of: " \"\(name) ", with: " \"\(command) ")
            default: String(line)
            }
        }
        return lines.joined(separator: "\n")
    }

    private static func ending(_ line: Substring, _ name: String, _ command: String) -> String {
        line.hasSuffix(name) ? line.dropLast(name.count) + command : String(line)
    }
}
