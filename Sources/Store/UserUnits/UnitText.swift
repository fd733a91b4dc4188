import Foundation
import Glibc
import ProcessSupport

/// The texts of an app's unit files.
struct UnitText {
    let directories: AppDirectories
    let environment: [String: String]
    let displayName: String

    private static let origin = "# The app writes this file when the app has work. The command `quit` removes this file.\n"

    func service(command: [String], program: String, socket: String) -> String {
        let line = "\"\(Self.escaped(command[0]))\"" + command.dropFirst().map { " \($0)" }.joined()
        return """
            \(Self.origin)[Unit]
            Description=Background work of \(Self.escaped(displayName))
            # A removed program is not a failure.
            ConditionPathExists=\(Self.path(program))
            # Apps start the agent each time they have work.
            StartLimitIntervalSec=0
            Wants=\(socket)
            After=\(socket)

            [Service]
            Type=notify
            \(variables)ExecStart=\(line)
            Restart=on-failure
            RestartSec=5
            # Another start does not help if the ledger is damaged or from a newer version.
            RestartPreventExitStatus=65 78
            # The agent's launches have their own time limits. If the agent is killed, the next agent takes the launches over.
            # Programs that a launch opened, such as a browser, continue when the agent exits.
            KillMode=process
            # If a launch is killed because it used all memory, the agent continues.
            OOMPolicy=continue
            Slice=background.slice
            # These rules also apply to the app's processes, so no rule hides folders or devices.
            NoNewPrivileges=true
            LockPersonality=true
            RestrictRealtime=true
            RestrictSUIDSGID=true
            RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
            SystemCallArchitectures=native
            SystemCallFilter=~@clock @cpu-emulation @module @obsolete @raw-io @reboot @swap
            SystemCallErrorNumber=EPERM

            [Install]
            WantedBy=default.target

            """
    }

    /// The text of the socket unit. The agent ignores the content of the datagrams, because only the arrival of a datagram has a
    /// meaning.
    var socket: String {
        """
        \(Self.origin)[Unit]
        Description=Starts the background work of \(Self.escaped(displayName)) when there is work

        [Socket]
        ListenDatagram=%t/\(directories.appIdentifier)/bell
        DirectoryMode=0700
        SocketMode=0600
        RemoveOnStop=true

        [Install]
        WantedBy=sockets.target

        """
    }

    /// - Parameter moment: the time, or `nil` if only changes of the clock start the service.
    func timer(at moment: TimerSchedule?) -> String {
        let calendar = moment.map { "\($0.line)Persistent=true\nAccuracySec=1s\n" } ?? ""
        return """
            \(Self.origin)[Unit]
            Description=Next background work of \(Self.escaped(displayName))

            [Timer]
            \(calendar)# A change of the clock or the time zone changes the times of the requests.
            OnClockChange=true
            OnTimezoneChange=true

            [Install]
            WantedBy=timers.target

            """
    }

    /// - Parameter folders: the folders whose changes start the service.
    func path(_ folders: [String]) -> String {
        """
        \(Self.origin)[Unit]
        Description=Starts the background work of \(Self.escaped(displayName)) when a folder changes

        [Path]
        \(folders.map { "PathChanged=\(Self.path($0))\n" }.joined())
        [Install]
        WantedBy=paths.target

        """
    }

    private var variables: String {
        StartingFile.folderVariables(environment).map { "Environment=\"\($0.name)=\(Self.escaped($0.value))\"\n" }.joined()
    }

    // MARK: Quoting

    /// Escapes the value of a setting that is not a command line. In such a setting, quotes would be a part of the value.
    private static func path(_ path: String) -> String { path.replacingOccurrences(of: "%", with: "%%") }

    static func escaped(_ text: String) -> String {
        text.replacingOccurrences(of: "\\", with: "\\\\").replacingOccurrences(of: "\"", with: "\\\"")
            .replacingOccurrences(of: "%", with: "%%").replacingOccurrences(of: "$", with: "$$")
            .replacingOccurrences(of: "\n", with: " ")
    }
}

extension UserUnits {
    /// Returns a text in the form of a unit's command line, without the enclosing quotes.
    package static func escaped(_ text: String) -> String { UnitText.escaped(text) }
}
