import ArgumentParser
import Foundation

/// Generates one manual page for the tool, and one manual page for each command. The text of the pages is the help of the
/// commands, so that pages and help never differ.
struct ManualPages {
    /// The values that the pages need from the output of `--experimental-dump-help`, an option of the library ArgumentParser.
    private struct Tool: Decodable { let command: Command }

    private struct Command: Decodable {
        let commandName: String
        let abstract: String?
        let discussion: String?
        let arguments: [Argument]?
        let subcommands: [Command]?
        let shouldDisplay: Bool?

        var shown: [Command] { (subcommands ?? []).filter { $0.shouldDisplay != false && $0.commandName != "help" } }
    }

    private struct Argument: Decodable {
        struct Name: Decodable {
            let kind: String
            let name: String

            var text: String { (kind == "long" ? "--" : "-") + name }
        }

        let kind: String
        let abstract: String?
        let names: [Name]?
        let valueName: String?
        let isOptional: Bool
        let isRepeating: Bool
        let shouldDisplay: Bool?
        let defaultValue: String?
        let allValues: [String]?

        var isPositional: Bool { kind == "positional" }
        private var value: String { (valueName ?? "value").uppercased() }

        /// The text for the argument in a synopsis.
        var usage: String {
            let name = isPositional ? value : names?.last.map { kind == "flag" ? $0.text : "\($0.text) \(value)" } ?? ""
            return (isOptional ? "[\(name)]" : name) + (isRepeating ? " ..." : "")
        }

        /// The names of the argument, as the first line of the paragraph about this argument.
        var head: String {
            if isPositional { return value }
            return (names ?? []).map { kind == "flag" ? $0.text : "\($0.text) \(value)" }.joined(separator: ", ")
        }

        var text: String {
            var parts = [abstract ?? ""]
            if let allValues, !allValues.isEmpty { parts.append("One of: \(allValues.joined(separator: ", ")).") }
            if let defaultValue { parts.append("Default: \(defaultValue).") }
            return parts.filter { !$0.isEmpty }.joined(separator: " ")
        }
    }

    private let root: Command?
    private let name: String
    private let displayName: String
    private let version: String

    init(_ root: any ParsableCommand.Type, as name: String, displayName: String, version: String) {
        self.root = (try? JSONDecoder().decode(Tool.self, from: Data(root._dumpHelp().utf8)))?.command
        (self.name, self.displayName, self.version) = (name, displayName, version)
    }

    var files: [InstalledFile] {
        guard let root else { return [] }
        return pages(of: root, [name])
    }

    private func pages(of command: Command, _ path: [String]) -> [InstalledFile] {
        // The page of a command also describes the subcommands, because a command has few subcommands.
        let page = InstalledFile("man/man1/\(path.joined(separator: "-")).1", page(of: command, path))
        guard path.count == 1 else { return [page] }
        return [page] + command.shown.flatMap { pages(of: $0, path + [$0.commandName]) }
    }

    private func page(of command: Command, _ path: [String]) -> String {
        let title = path.joined(separator: "-")
        var text = """
            .TH \(Self.quoted(title.uppercased())) 1 "" \(Self.quoted("\(displayName) \(version)"))
            .SH NAME
            \(Self.line("\(title) - \(Self.withoutStop(command.abstract ?? displayName))"))
            .SH SYNOPSIS

            """
        let synopses = command.shown.isEmpty ? [(command, path)] : command.shown.map { ($0, path + [$0.commandName]) }
        text += synopses.map { ".B \(Self.line($1.joined(separator: " ")))\n\(Self.line(Self.usage($0)))\n" }
            .joined(separator: ".br\n")
        text += description(of: command)
        text += options(of: command)
        if !command.shown.isEmpty {
            text += ".SH COMMANDS\n"
            for inner in command.shown {
                text += ".TP\n.B \(Self.line(inner.commandName))\n\(Self.line(inner.abstract ?? ""))\n"
                if path.count > 1 { text += nested(inner) }
            }
        }
        return text + seeAlso(path)
    }

    private static func usage(_ command: Command) -> String {
        let arguments = (command.arguments ?? []).filter { $0.shouldDisplay != false }
        let words = arguments.filter { !["--help", "--version"].contains($0.names?.last?.text ?? "") }.map(\.usage)
        return (words + ((command.subcommands ?? []).isEmpty ? [] : ["COMMAND"])).joined(separator: " ")
    }

    /// Returns the long description of a command, which the library ArgumentParser calls "discussion". Examples in this
    /// description are printed unchanged.
    private func description(of command: Command) -> String {
        guard let discussion = command.discussion, !discussion.isEmpty else { return "" }
        let parts = discussion.components(separatedBy: "Example:\n")
        var text = parts[0].isEmpty ? "" : ".SH DESCRIPTION\n" + Self.paragraphs(parts[0])
        if parts.count > 1 { text += ".SH EXAMPLES\n.nf\n" + Self.lines(renamed(parts[1])) + ".fi\n" }
        return text
    }

    private func options(of command: Command) -> String {
        let shown = (command.arguments ?? []).filter { $0.shouldDisplay != false }
        guard !shown.isEmpty else { return "" }
        return ".SH OPTIONS\n" + shown.map(Self.option).joined()
    }

    private func nested(_ command: Command) -> String {
        let shown = (command.arguments ?? []).filter { $0.shouldDisplay != false && $0.names?.last?.text != "--version" }
        let examples = (command.discussion ?? "").components(separatedBy: "Example:\n")
        var text = ".RS\n"
        if !examples[0].isEmpty { text += ".PP\n" + Self.paragraphs(examples[0]) }
        text += shown.map(Self.option).joined()
        if examples.count > 1 { text += ".PP\n.nf\n" + Self.lines(renamed(examples[1])) + ".fi\n" }
        return text + ".RE\n"
    }

    private static func option(_ argument: Argument) -> String { ".TP\n.B \(line(argument.head))\n\(line(argument.text))\n" }

    private func seeAlso(_ path: [String]) -> String {
        let others = path.count > 1 ? [name] : (root?.shown.map { "\(name)-\($0.commandName)" } ?? [])
        guard !others.isEmpty else { return "" }
        return ".SH SEE ALSO\n" + others.map { ".BR \(Self.line($0)) (1)" }.joined(separator: ",\n") + "\n"
    }

    // MARK: roff (groff_man(7))

    private static func withoutStop(_ text: String) -> String { text.hasSuffix(".") ? String(text.dropLast()) : text }

    private static func quoted(_ text: String) -> String { "\"\(line(text).replacingOccurrences(of: "\"", with: "\\(dq"))\"" }

    /// Escapes one line of text for roff. The line then contains no roff request, and a user can copy its hyphens into a shell.
    static func line(_ text: String) -> String {
        let escaped = text.replacingOccurrences(of: "\\", with: "\\e").replacingOccurrences(of: "-", with: "\\-")
            .replacingOccurrences(of: "\n", with: " ")
        return escaped.hasPrefix(".") || escaped.hasPrefix("'") ? "\\&" + escaped : escaped.isEmpty ? "\\&" : escaped
    }

    private static func lines(_ text: String) -> String {
        text.trimmingCharacters(in: .newlines).components(separatedBy: "\n").map { line($0) + "\n" }.joined()
    }

    private static func paragraphs(_ text: String) -> String {
        text.trimmingCharacters(in: .newlines).components(separatedBy: "\n\n").map(lines).joined(separator: ".PP\n")
    }

    /// Replaces the tool's original name in examples, if the name is a separate word.
    private func renamed(_ text: String) -> String {
        guard let own = root?.commandName, own != name else { return text }
        return text.components(separatedBy: "\n").map { line in
            line.components(separatedBy: " ").map { $0 == own ? name : $0 }.joined(separator: " ")
        }.joined(separator: "\n")
    }
}
