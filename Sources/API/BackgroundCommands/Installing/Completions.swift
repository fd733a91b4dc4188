import ArgumentParser
import Foundation

/// The completion files for shells, in the folders in which the shells look for them.
struct Completions {
    let root: any ParsableCommand.Type
    let command: String

    init(_ root: any ParsableCommand.Type, as command: String) { (self.root, self.command) = (root, command) }

    var files: [InstalledFile] {
        [
            // The script for bash is written without its `#!` line, because bash reads the file and does not execute it.
            InstalledFile("bash-completion/completions/\(command)", script(.bash).replacing(/^#!.*\n+/, with: "")),
            InstalledFile("zsh/site-functions/_\(command)", script(.zsh)),
            InstalledFile("fish/vendor_completions.d/\(command).fish", script(.fish)),
        ]
    }

    /// Returns the completion script for the name of the installed command. The library ArgumentParser generates a script for the
    /// name of the root command. The method replaces this name, except in the names of the shell functions in the script.
    private func script(_ shell: CompletionShell) -> String {
        let (text, name) = (offerCommandsAfterHelp(root.completionScript(for: shell), shell), root._commandName)
        guard name != command else { return text }
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map { line -> String in
            switch shell {
            case .bash where line.hasPrefix("complete "): Self.ending(line, name, command)
            case .zsh where line.hasPrefix("#compdef "): "#compdef \(command)"
            case .fish:
                // The script contains the name as a separate word, and at the start of a list of command names. Both are
                // replaced.
                line.replacingOccurrences(of: "'\(name)'", with: "'\(command)'")
                    .replacingOccurrences(of: " \"\(name)\"", with: " \"\(command)\"")
                    .replacingOccurrences(of: " \"\(name) ", with: " \"\(command) ")
            default: String(line)
            }
        }
        return lines.joined(separator: "\n")
    }

    /// Adds completions for the word after `help`, because the script of the library offers no commands after `help`.
    private func offerCommandsAfterHelp(_ script: String, _ shell: CompletionShell) -> String {
        let name = root._commandName
        let commands = root.configuration.subcommands.filter { $0.configuration.shouldDisplay }.map { $0._commandName }
            .joined(separator: " ")
        switch shell {
        case .bash:
            return script.replacing(
                "_help() {\n", with: "_help() {\n    COMPREPLY+=($(compgen -W '\(commands)' -- \"${cur}\"))\n", maxReplacements: 1
            )
        case .zsh:
            return script.replacing("'*:subcommands:'", with: "':command:(\(commands))'")
        case .fish:
            let condition = "__\(name)_should_offer_completions_for_positional \"\(name) help\" -eq 1"
            return script + "\ncomplete -c '\(name)' -n '\(condition)' -fa '\(commands)'\n"
        default: return script
        }
    }

    private static func ending(_ line: Substring, _ name: String, _ command: String) -> String {
        line.hasSuffix(name) ? line.dropLast(name.count) + command : String(line)
    }
}
