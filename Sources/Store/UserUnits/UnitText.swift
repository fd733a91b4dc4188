import Foundation
import Glibc
import ProcessSupport

/// What stands in the files of an app's units.
struct UnitText {
    let directories: AppDirectories
    let environment: [String: String]
    let displayName: String

    private static let origin = "# Written by the app when it has work; removed by `quit`.\n"

    func service(command: [String], program: String, socket: String) -> String {
        let line = "\"\(Self.escaped(command[0]))\"" + command.dropFirst().map { " \($0)" }.joined()
        return """
            \(Self.origin)[Unit]
            Description=Background work of \(Self.escaped(displayName))
            # A program that was removed is no failure.
            ConditionPathExists=\(Self.path(program))
            # Apps ring it as often as they have work.
            StartLimitIntervalSec=0
            Wants=\(socket)
            After=\(socket)

            [Service]
            Type=notify
            \(variables)ExecStart=\(line)
            Restart=on-failure
            RestartSec=5
            # What no other start would change: a ledger that is damaged, or of a newer version.
            RestartPreventExitStatus=65 78
            # Its launches have their own budgets, and the next agent takes them over where this one is killed. What they opened for the
            # person stays when it leaves.
            KillMode=process
            # A launch that takes all memory does not take the agent along.
            OOMPolicy=continue
            Slice=background.slice
            # The app's own processes live by these rules, too: nothing that hides folders or devices from them.
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

    /// Its datagrams say nothing: that one came is all.
    var socket: String {
        """
        \(Self.origin)[Unit]
        Description=Starts the background work of \(Self.escaped(displayName)) when it has some

        [Socket]
        ListenDatagram=%t/\(directories.appIdentifier)/bell
        DirectoryMode=0700
        SocketMode=0600
        RemoveOnStop=true

        [Install]
        WantedBy=sockets.target

        """
    }

    func timer(at instant: Date?) -> String {
        let calendar = instant.map { "OnCalendar=\(Self.calendar($0))\nPersistent=true\nAccuracySec=1s\n" } ?? ""
        return """
            \(Self.origin)[Unit]
            Description=Next background work of \(Self.escaped(displayName))

            [Timer]
            \(calendar)# What is due on the person's clock has to be planned anew.
            OnClockChange=true
            OnTimezoneChange=true

            [Install]
            WantedBy=timers.target

            """
    }

    private var variables: String {
        StartingFile.folderVariables(environment).map { "Environment=\"\($0.name)=\(Self.escaped($0.value))\"\n" }.joined()
    }

    // MARK: The moment

    /// Whole seconds, never before the moment itself.
    private static func calendar(_ instant: Date) -> String {
        var seconds = time_t(instant.timeIntervalSince1970.rounded(.up))
        var parts = tm()
        gmtime_r(&seconds, &parts)
        func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let day = "\(parts.tm_year + 1900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday))"
        return "\(day) \(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec)) UTC"
    }

    /// The moment in a timer's text.
    static func instant(_ text: String) -> Date? {
        guard let line = text.split(separator: "\n").first(where: { $0.hasPrefix("OnCalendar=") }) else { return nil }
        let numbers = line.split { !$0.isNumber }.compactMap { Int32($0) }
        guard numbers.count == 6, line.hasSuffix(" UTC") else { return nil }
        var parts = tm()
        (parts.tm_year, parts.tm_mon, parts.tm_mday) = (numbers[0] - 1900, numbers[1] - 1, numbers[2])
        (parts.tm_hour, parts.tm_min, parts.tm_sec) = (numbers[3], numbers[4], numbers[5])
        return Date(timeIntervalSince1970: Double(timegm(&parts)))
    }

    // MARK: Quoting

    /// Of a setting that is no command line: quotes would be a part of it.
    private static func path(_ path: String) -> String { path.replacingOccurrences(of: "%", with: "%%") }

    static func escaped(_ text: String) -> String {
        text.replacingOccurrences(of: "\\", with: "\\\\").replacingOccurrences(of: "\"", with: "\\\"")
            .replacingOccurrences(of: "%", with: "%%").replacingOccurrences(of: "$", with: "$$")
            .replacingOccurrences(of: "\n", with: " ")
    }
}

extension UserUnits {
    /// A text as a command line of a unit has it, between quotes.
    package static func escaped(_ text: String) -> String { UnitText.escaped(text) }
}
