import Foundation
import ProcessSupport

/// A file of an installation, in a folder like `/usr/share` or `~/.local/share`.
struct InstalledFile: Equatable {
    let path: String
    let content: Data

    init(_ path: String, _ content: Data) { (self.path, self.content) = (path, content) }

    init(_ path: String, _ text: String) { self.init(path, Data(text.utf8)) }
}

/// Generates the files that integrate an app into the desktop and the shell: menu entry, icon, completions and manual pages. The
/// type only computes: the input is the description of an app, and the output is a list of files.
struct DesktopFiles {
    let integration: DesktopIntegration
    /// The app's `CFBundleIdentifier`, which is a part of file names.
    let identifier: String
    let displayName: String
    let version: String
    /// The absolute path of the program.
    let program: String
    /// The command that a user types.
    var command: String { URL(exactPath: program).lastPathComponent }

    var all: [InstalledFile] {
        var files: [InstalledFile] = []
        if integration.openArguments != nil {
            files.append(InstalledFile("applications/\(identifier).desktop", desktopEntry))
            files.append(InstalledFile("metainfo/\(component).metainfo.xml", metainfo))
        }
        if let icon = integration.icon { files.append(InstalledFile("icons/hicolor/scalable/apps/\(identifier).svg", icon)) }
        if let commands = integration.commands {
            files += Completions(commands, as: command).files
            files += ManualPages(commands, as: command, displayName: displayName, version: version).files
        }
        return files
    }

    // MARK: Desktop entry (Desktop Entry Specification 1.5)

    var desktopEntry: String {
        let actions = integration.actions.map(\.identifier).joined(separator: ";")
        let lines: [(String, String)] = [
            ("Type", "Application"), ("Name", Self.value(displayName)), ("Comment", Self.value(integration.summary)),
            ("Exec", exec(integration.openArguments ?? []) + (integration.mimeTypes.isEmpty ? "" : " %F")),
            ("Icon", integration.icon == nil ? "application-x-executable" : identifier), ("Terminal", "false"),
            ("Categories", Self.list(integration.categories)), ("MimeType", Self.list(integration.mimeTypes)),
            ("Actions", actions.isEmpty ? "" : actions + ";"),
        ]
        var text = "[Desktop Entry]\n" + Self.text(lines)
        for action in integration.actions {
            text += "\n[Desktop Action \(action.identifier)]\n"
            text += Self.text([("Name", Self.value(action.name)), ("Exec", exec(action.arguments))])
        }
        return text
    }

    private static func text(_ lines: [(String, String)]) -> String {
        lines.filter { !$0.1.isEmpty }.map { "\($0.0)=\($0.1)\n" }.joined()
    }

    private static func list(_ values: [String]) -> String { values.map { value($0) + ";" }.joined() }

    private func exec(_ arguments: [String]) -> String { ([program] + arguments).map(Self.execWord).joined(separator: " ") }

    /// Escapes a value of a desktop entry. Line breaks become spaces.
    static func value(_ text: String) -> String {
        text.replacingOccurrences(of: "\\", with: "\\\\").replacingOccurrences(of: "\n", with: " ")
    }

    /// Quotes a word of a command line if necessary. Inside quotes, four characters are escaped. ``value(_:)`` escapes the
    /// complete command line again.
    static func execWord(_ word: String) -> String {
        let isPlain = !word.isEmpty && word.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "/._-+:,@=".contains($0)) }
        if isPlain { return word }
        var quoted = ""
        for character in word {
            switch character {
            case "\"", "`", "$", "\\": quoted += "\\\(character)"
            case "%": quoted += "%%"
            default: quoted.append(character)
            }
        }
        return value("\"\(quoted)\"")
    }

    // MARK: AppStream

    private var component: String { integration.componentIdentifier ?? identifier }

    var metainfo: String {
        let paragraphs = integration.details.components(separatedBy: "\n\n").filter { !$0.isEmpty }
        let description = paragraphs.isEmpty ? [integration.summary] : paragraphs
        return """
            <?xml version="1.0" encoding="UTF-8"?>
            <component type="desktop-application">
              <id>\(Self.xml(component))</id>
              <metadata_license>CC0-1.0</metadata_license>
              <project_license>\(Self.xml(integration.license))</project_license>
              <name>\(Self.xml(displayName))</name>
              <summary>\(Self.xml(integration.summary))</summary>
              <description>
            \(description.map { "    <p>\(Self.xml($0.replacingOccurrences(of: "\n", with: " ")))</p>" }.joined(separator: "\n"))
              </description>
              <launchable type="desktop-id">\(Self.xml(identifier)).desktop</launchable>
              <provides>
                <binary>\(Self.xml(command))</binary>
              </provides>
              <content_rating type="oars-1.1"/>
            </component>

            """
    }

    private static func xml(_ text: String) -> String {
        text.replacingOccurrences(of: "&", with: "&amp;").replacingOccurrences(of: "<", with: "&lt;")
            .replacingOccurrences(of: ">", with: "&gt;").replacingOccurrences(of: "\"", with: "&quot;")
    }
}
