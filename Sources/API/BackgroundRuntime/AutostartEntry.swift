import ProcessSupport
import BackgroundLedger
import CLinux
import Foundation
import Synchronization
import UserUnits

/// The entry that starts the agent at the next login. The entry is a systemd user unit if a user manager runs, and otherwise an
/// XDG autostart entry.
package struct AutostartEntry: Sendable {
    package enum Kind: Sendable, Equatable {
        case userUnit(path: String)
        case xdgAutostart(path: String)

        package var path: String {
            switch self {
            case .userUnit(let path), .xdgAutostart(let path): path
            }
        }
    }

    let directories: AppDirectories
    let environment: [String: String]

    /// The command that runs at login instead of the agent's program. If the value is empty, the agent's program runs. The
    /// command checks whether the ledger was lost, and submits the app's work again if necessary. Then the command replaces
    /// itself by the agent's program (`exec`).
    package static let command = Mutex<[String]>([])

    package init(directories: AppDirectories, environment: [String: String] = ThisProcess.environment) {
        self.directories = directories
        self.environment = environment
    }

    /// The units of a systemd user manager.
    package var units: UserUnits { UserUnits(directories: directories, environment: environment) }
    private var desktopURL: URL {
        directories.configuration.deletingLastPathComponent()
            .appendingPathComponent("autostart/background-agent-\(directories.appIdentifier).desktop")
    }

    package var isUserUnitInstalled: Bool { units.hasManager && units.isInstalled(.service) }

    /// The kind of the installed entry, or `nil` if no entry is installed.
    package var installed: Kind? {
        if units.isInstalled(.service) { return .userUnit(path: units.url(.service).path) }
        if access(desktopURL.path, F_OK) == 0 { return .xdgAutostart(path: desktopURL.path) }
        return nil
    }

    /// The states of an installed entry. In most states the entry does not start the agent correctly.
    package enum EntryState: Sendable, Equatable {
        case asItShouldBe
        /// The entry starts a program with another path.
        case starts(String)
        /// The entry starts a program that does not exist any more.
        case startsNothing(String)
        /// The user manager has the unit, but does not start the unit at login.
        case isNotEnabled
        /// The unit is masked: a link to /dev/null replaces the unit file.
        case isMasked
        /// An earlier version of the app wrote the entry, or the socket of the entry was removed. If the agent exits, nothing
        /// starts the agent again.
        case lacksSocket
    }

    /// Returns the state of the installed entry, or `nil` if no entry is installed.
    package func standing(agent: String) -> EntryState? {
        guard let installed else { return nil }
        if units.isMasked(.service) { return .isMasked }
        let (key, command) =
            switch installed {
            case .userUnit: ("ExecStart=", line(agent, UserUnits.escaped))
            case .xdgAutostart: ("Exec=", line(agent, Self.desktopEscaped))
            }
        let text = (try? String(contentsOfFile: installed.path, encoding: .utf8)) ?? ""
        let line = text.split(separator: "\n").first { $0.hasPrefix(key) }?.dropFirst(key.count) ?? ""
        guard line.hasSuffix(command) else {
            // In the command line of the entry, environment variables may precede the program.
            let program = line.split(separator: "\"").first { $0.hasPrefix("/") }.map(String.init) ?? ""
            return access(program, X_OK) == 0 ? .starts(program) : .startsNothing(program)
        }
        guard case .userUnit = installed else { return .asItShouldBe }
        if let missing = units.missingProgram { return .startsNothing(missing) }
        guard units.isEnabled(.service) else { return .isNotEnabled }
        return text.contains(units.name(.socket)) && units.isInstalled(.socket) ? .asItShouldBe : .lacksSocket
    }

    /// Writes the kind of entry that this machine needs, and removes an entry of the other kind. The method can be called
    /// repeatedly.
    package func install(agent: String, displayName: String) throws -> Kind {
        guard units.hasManager else {
            try StartingFile.write(desktopText(agent: agent, displayName: displayName), to: desktopURL)
            return .xdgAutostart(path: desktopURL.path)
        }
        try units.install(command: command(agent), program: program(agent), displayName: displayName)
        unlink(desktopURL.path)
        // An agent may be running that the user manager did not start. The user manager then starts a second agent, which waits
        // while the first agent runs. If the first agent is killed, the second agent continues the work.
        if FileLock.isHeld(directories.agentLock) { units.startService() }
        return .userUnit(path: units.url(.service).path)
    }

    /// Removes the installed entries and returns them.
    @discardableResult
    package func remove() -> [Kind] {
        var removed = units.remove().map { [Kind.userUnit(path: $0)] } ?? []
        if unlink(desktopURL.path) == 0 { removed.append(.xdgAutostart(path: desktopURL.path)) }
        return removed
    }

    private func command(_ agent: String) -> [String] {
        let command = Self.command.withLock { $0 }
        return command.isEmpty ? [agent, "--app", directories.appIdentifier] : command
    }

    /// Returns the command line for an agent. The arguments after the program are fixed texts that need no quotes.
    private func line(_ agent: String, _ escaped: (String) -> String) -> String {
        let words = command(agent)
        return "\"\(escaped(words[0]))\"" + words.dropFirst().map { " \($0)" }.joined()
    }

    private func program(_ agent: String) -> String { Self.command.withLock { $0.first } ?? agent }

    /// Escapes a value of a desktop entry that is not a command line.
    private static func desktopString(_ text: String) -> String {
        text.replacingOccurrences(of: "\\", with: "\\\\").replacingOccurrences(of: "\n", with: "\\n")
    }

    private func desktopText(agent: String, displayName: String) -> String {
        let assignments = StartingFile.folderVariables(environment).map {
            "\"\(Self.desktopEscaped("\($0.name)=\($0.value)"))\" "
        }
        .joined()
        let variables = assignments.isEmpty ? "" : "env " + assignments
        return """
            [Desktop Entry]
            Type=Application
            Name=Background work of \(displayName.replacingOccurrences(of: "\n", with: " "))
            Comment=The app writes this file when the app has work. The command quit removes this file.
            TryExec=\(Self.desktopString(program(agent)))
            Exec=\(variables)\(line(agent, Self.desktopEscaped))
            NoDisplay=true
            X-GNOME-Autostart-enabled=true

            """
    }

    /// Escapes a word of an Exec value. Inside quotes, a backslash precedes the characters backslash, quote, dollar and backtick.
    /// A percent sign is doubled. The result is then escaped again, like every string in a desktop entry.
    private static func desktopEscaped(_ text: String) -> String {
        var escaped = ""
        for character in text {
            switch character {
            case "\\": escaped += "\\\\\\\\"
            case "\"", "$", "`": escaped += "\\\\\(character)"
            case "%": escaped += "%%"
            default: escaped.append(character)
            }
        }
        return escaped
    }
}
