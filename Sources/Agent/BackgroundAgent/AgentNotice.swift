import BackgroundLedger
import Foundation
import TransferMachines

/// What the agent itself has to say to the person, as no app runs that could: told once a day for each cause.
struct AgentNotice: Equatable {
    /// Names the cause: the same one is told once.
    let cause: String
    let title: String
    let body: String

    /// Of the identifiers of its notifications; nobody is launched when one is pressed.
    static let prefix = NotificationRecord.agentPrefix
    /// Seconds after which a cause that lasts, or has come back, is told again.
    static let silence: Double = 86_400

    var identifier: String { Self.prefix + cause }

    var content: NotificationContent {
        NotificationContent(
            title: title, subtitle: "", body: body, categoryIdentifier: "", threadIdentifier: "", userInfo: "{}", sound: nil,
            interruptionLevel: 1, badge: nil)
    }
}

extension AgentNotice {
    private static func name(of host: String) -> String { host.split(separator: "/").last.map(String.init) ?? host }

    /// Notifications that what goes to a host waits: untrue once something arrived.
    static func suspects(_ notice: NotificationRecord, host: String) -> Bool { suspectedHost(of: notice) == name(of: host) }

    /// Without its scheme; `nil`: it says something else.
    fileprivate static func suspectedHost(of notice: NotificationRecord) -> String? {
        for suspicion in TransferTrouble.Suspicion.allCases where notice.identifier.hasPrefix("\(prefix)\(suspicion.rawValue).") {
            return String(notice.identifier.dropFirst("\(prefix)\(suspicion.rawValue).".count))
        }
        return nil
    }

    /// Something between this computer and a server is not what it should be, and transfers wait for that to change.
    init(_ suspicion: TransferTrouble.Suspicion, host: String, message: String, now: Date) {
        let name = Self.name(of: host)
        cause = "\(suspicion.rawValue).\(name)"
        switch suspicion {
        case .portal:
            title = "This network wants you to log in"
            body = "What goes to \(name) waits. \(message) It is tried again when the network changes."
        case .clock:
            title = "Is the clock of this computer right?"
            body =
                "It says \(now.formatted(.iso8601.year().month().day())), and the certificate of \(name) is not valid then. "
                + "What goes there waits until the clock or the network changes."
        case .certificate:
            title = "\(name) cannot be trusted here"
            body = "\(message) A network with a log-in page can be the cause. What goes there waits until the network changes."
        }
    }
}

/// What an app is launched as is not there any more: deleted, moved away, or on a disk that is not mounted.
package struct AppIsMissing: Error, Equatable, CustomStringConvertible {
    let path: String
    /// What a person calls the app.
    let name: String

    package init(path: String, name: String) { (self.path, self.name) = (path, name) }

    package var description: String { "\(path) is not there any more, or cannot be run" }
}

extension AgentNotice {
    private static let missing = "missing."

    /// Notifications that an app cannot be started: untrue once it was.
    static func saysMissing(_ notice: NotificationRecord) -> Bool { notice.identifier.hasPrefix(prefix + missing) }

    init(_ missing: AppIsMissing) {
        cause = Self.missing + missing.path
        title = "\(missing.name) cannot be started"
        body = "\(missing). Its background work waits: put it back, or start it once from where it is now."
    }
}

extension Pass {
    mutating func tell(_ notice: AgentNotice) throws {
        if let known = try transaction.notification(notice.identifier), !known.life.isTakenBack,
            abs(now.timeIntervalSince(known.deliveredAt ?? now)) < AgentNotice.silence
        {
            return
        }
        try transaction.addNotification(notice.identifier, notice.content, dueAt: nil, now: now)
    }

    /// What waited for a network or a clock was cancelled, or held: nothing waits any more, and the next that does is told anew.
    mutating func takeBackSuspicions() throws {
        let transaction = transaction
        try takeBack { notice in
            guard !notice.life.isTakenBack, let host = AgentNotice.suspectedHost(of: notice) else { return false }
            return try !transaction.isAnythingInTrouble(at: ["http://" + host, "https://" + host])
        }
    }

    /// Its cause is over.
    ///
    /// - Parameter isOver: asked of the agent's own notifications.
    mutating func takeBack(_ isOver: (NotificationRecord) throws -> Bool) throws {
        let own = try transaction.notifications(beginning: AgentNotice.prefix)
        try transaction.takeBack(own.filter { try isOver($0) && !$0.life.isTakenBack }, now: now)
    }
}
