import ProcessSupport
import BackgroundLedger
import CLinux
import Foundation
import Synchronization

/// Brings the agent back at the next login: a systemd user unit where a user manager runs, an XDG autostart entry otherwise.
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

    /// What is run at the login in place of the agent itself: a verb that becomes it, and first puts right what the app knows and a lost
    /// ledger does not. Empty: the agent.
    package static let command = Mutex<[String]>([])

    package init(directories: AppDirectories, environment: [String: String] = ProcessInfo.processInfo.environment) {
        self.directories = directories
        self.environment = environment
    }

    private var configurationHome: URL { directories.configuration.deletingLastPathComponent() }
    package var unitName: String { "background-agent-\(directories.appIdentifier).service" }
    private var unitURL: URL { configurationHome.appendingPathComponent("systemd/user/\(unitName)") }
    private var wantsURL: URL { configurationHome.appendingPathComponent("systemd/user/default.target.wants/\(unitName)") }
    private var desktopURL: URL {
        configurationHome.appendingPathComponent("autostart/background-agent-\(directories.appIdentifier).desktop")
    }

    /// A user manager listens.
    package var hasUserManager: Bool {
        guard let runtime = environment["XDG_RUNTIME_DIR"] else { return false }
        return access(runtime + "/systemd/private", F_OK) == 0
    }

    package var isUserUnitInstalled: Bool { access(unitURL.path, F_OK) == 0 && hasUserManager }

    /// What is installed now, if anything.
    package var installed: Kind? {
        if access(unitURL.path, F_OK) == 0 { return .userUnit(path: unitURL.path) }
        if access(desktopURL.path, F_OK) == 0 { return .xdgAutostart(path: desktopURL.path) }
        return nil
    }

    /// How an entry that is installed stands.
    package enum Standing: Sendable, Equatable {
        case asItShouldBe
        /// It starts another program.
        case starts(String)
        /// It starts a program that is not there any more.
        case startsNothing(String)
        /// The user manager has it, and does not start it at login.
        case isNotEnabled
    }

    /// How what is installed stands; `nil`: nothing is.
    package func standing(agent: String) -> Standing? {
        guard let installed else { return nil }
        let (key, command) =
            switch installed {
            case .userUnit: ("ExecStart=", command(agent, Self.unitEscaped))
            case .xdgAutostart: ("Exec=", command(agent, Self.desktopEscaped))
            }
        let text = (try? String(contentsOfFile: installed.path, encoding: .utf8)) ?? ""
        let line = text.split(separator: "\n").first { $0.hasPrefix(key) }?.dropFirst(key.count) ?? ""
        if line.hasSuffix(command) {
            guard case .userUnit(let path) = installed else { return .asItShouldBe }
            let target = try? FileManager.default.destinationOfSymbolicLink(atPath: wantsURL.path)
            return target == path ? .asItShouldBe : .isNotEnabled
        }
        // The words before the program are variables.
        let program = line.split(separator: "\"").first { $0.hasPrefix("/") }.map(String.init) ?? ""
        return access(program, X_OK) == 0 ? .starts(program) : .startsNothing(program)
    }

    /// Writes the one entry that fits this machine, and removes one of the other kind. Repeating it is harmless.
    package func install(agent: String, displayName: String) throws -> Kind {
        if hasUserManager {
            try write(unitText(agent: agent, displayName: displayName), to: unitURL)
            try? FileManager.default.createDirectory(
                at: wantsURL.deletingLastPathComponent(), withIntermediateDirectories: true)
            // What `systemctl enable` does; done here because a link needs no bus.
            unlink(wantsURL.path)
            guard symlink(unitURL.path, wantsURL.path) == 0 else {
                throw StoreError.cannotCreate(path: wantsURL.path, reason: String(cString: strerror(errno)))
            }
            unlink(desktopURL.path)
            systemctl(["daemon-reload"])
            // An agent that somebody else started: the unit's stands by, and goes on where that one is killed.
            if FileLock.isHeld(directories.agentLock) { startUserUnit() }
            return .userUnit(path: unitURL.path)
        }
        try write(desktopText(agent: agent, displayName: displayName), to: desktopURL)
        return .xdgAutostart(path: desktopURL.path)
    }

    /// Removes whatever was installed; returns what it removed.
    @discardableResult
    package func remove() -> [Kind] {
        var removed: [Kind] = []
        unlink(wantsURL.path)
        if unlink(unitURL.path) == 0 {
            removed.append(.userUnit(path: unitURL.path))
            if hasUserManager { systemctl(["daemon-reload"]) }
        }
        if unlink(desktopURL.path) == 0 { removed.append(.xdgAutostart(path: desktopURL.path)) }
        return removed
    }

    /// `false` when systemd does not take it.
    @discardableResult
    func startUserUnit() -> Bool { systemctl(["start", "--no-block", unitName]) }

    /// The folders this app was scheduled with: a session at the next login may set none of the variables.
    private var folderVariables: [(String, String)] {
        ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"].compactMap { name in
            environment[name].map { (name, $0) }
        }
    }

    private func unitText(agent: String, displayName: String) -> String {
        let variables = folderVariables.map { "Environment=\"\($0.0)=\(Self.unitEscaped($0.1))\"\n" }.joined()
        return """
            # Written by the app when it has work; removed by `quit`.
            [Unit]
            Description=Background work of \(Self.unitEscaped(displayName))
            # A program that was removed is no failure.
            ConditionPathExists=\(Self.unitPath(program(agent)))

            [Service]
            \(variables)ExecStart=\(command(agent, Self.unitEscaped))
            Restart=on-failure
            RestartSec=5
            # What no other start would change: a ledger that is damaged, or of a newer version.
            RestartPreventExitStatus=65 78
            # The agent's launches are its children and end with their own budgets.
            KillMode=mixed

            [Install]
            WantedBy=default.target

            """
    }

    /// The words behind the program are ours, and need no quotes.
    private func command(_ agent: String, _ escaped: (String) -> String) -> String {
        let command = Self.command.withLock { $0 }
        let words = command.isEmpty ? [agent, "--app", directories.appIdentifier] : command
        return "\"\(escaped(words[0]))\"" + words.dropFirst().map { " \($0)" }.joined()
    }

    private func program(_ agent: String) -> String { Self.command.withLock { $0.first } ?? agent }

    /// Of a setting that is no command line: quotes would be a part of it.
    private static func unitPath(_ path: String) -> String { path.replacingOccurrences(of: "%", with: "%%") }

    /// A value of a desktop entry, which is no command line.
    private static func desktopString(_ text: String) -> String {
        text.replacingOccurrences(of: "\\", with: "\\\\").replacingOccurrences(of: "\n", with: "\\n")
    }

    private static func unitEscaped(_ text: String) -> String {
        text.replacingOccurrences(of: "\\", with: "\\\\").replacingOccurrences(of: "\"", with: "\\\"")
            .replacingOccurrences(of: "%", with: "%%").replacingOccurrences(of: "$", with: "$$")
            .replacingOccurrences(of: "\n", with: " ")
    }

    private func desktopText(agent: String, displayName: String) -> String {
        let assignments = folderVariables.map { "\"\(Self.desktopEscaped("\($0.0)=\($0.1)"))\" " }.joined()
        let variables = assignments.isEmpty ? "" : "env " + assignments
        return """
            [Desktop Entry]
            Type=Application
            Name=Background work of \(displayName.replacingOccurrences(of: "\n", with: " "))
            Comment=Written by the app when it has work; removed by quit
            TryExec=\(Self.desktopString(program(agent)))
            Exec=\(variables)\(command(agent, Self.desktopEscaped))
            NoDisplay=true
            X-GNOME-Autostart-enabled=true

            """
    }

    /// Quoting of Exec values: backslash, quote, dollar and backtick inside quotes; percent doubled; then the string level.
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

    private func write(_ text: String, to url: URL) throws {
        do {
            // Nobody else may write there, whatever the umask of this process allows.
            try FileManager.default.createDirectory(
                at: url.deletingLastPathComponent(), withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
            try Data(text.utf8).write(to: url, options: .atomic)
            chmod(url.path, 0o644)
        } catch {
            throw StoreError.cannotCreate(path: url.path, reason: (error as NSError).localizedDescription)
        }
    }

    @discardableResult
    private func systemctl(_ arguments: [String]) -> Bool {
        let child = ChildProcess(
            path: "/usr/bin/env", arguments: ["systemctl", "--user"] + arguments, environment: environment)
        return (try? child.run().code) == 0
    }
}
