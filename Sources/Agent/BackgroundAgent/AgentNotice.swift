import BackgroundLedger
import Foundation
import TransferMachines

/// A notification that the agent shows about a problem, because no app process can report it. For each cause, such a notification
/// is shown at most once a day.
struct AgentNotice: Equatable {
    /// The identifier of the problem that causes the notification. Several notifications with an equal cause are shown as a
    /// single notification.
    let cause: String
    let title: String
    let body: String

    /// The prefix of the identifiers of the agent's own notifications. If the user presses such a notification, no app is
    /// launched.
    static let prefix = NotificationRecord.agentPrefix
    /// The number of seconds after which a notification can be shown again, if its cause continues or returns.
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

    /// Returns `true` if the notification reports that transfers to this host wait. The notification is outdated when data from
    /// the host arrives.
    static func suspects(_ notice: NotificationRecord, host: String) -> Bool { suspectedHost(of: notice) == name(of: host) }

    /// Returns the host of a notification about waiting transfers, without the scheme. Returns `nil` for notifications with
    /// another cause.
    fileprivate static func suspectedHost(of notice: NotificationRecord) -> String? {
        for suspicion in TransferTrouble.Suspicion.allCases where notice.identifier.hasPrefix("\(prefix)\(suspicion.rawValue).") {
            return String(notice.identifier.dropFirst("\(prefix)\(suspicion.rawValue).".count))
        }
        return nil
    }

    /// Creates a notification about a problem between this computer and a server, for example a captive portal. Transfers wait
    /// until the problem ends.
    init(_ suspicion: TransferTrouble.Suspicion, host: String, message: String, now: Date) {
        let name = Self.name(of: host)
        cause = "\(suspicion.rawValue).\(name)"
        switch suspicion {
        case .portal:
            title = "This network requires a login"
            body = "Transfers to \(name) wait. \(message) The transfers continue when the network changes."
        case .clock:
            title = "The clock of this computer may be wrong"
            body =
                "The clock shows \(now.formatted(.iso8601.year().month().day())), "
                + "and the certificate of \(name) is not valid on that date. "
                + "Transfers to this server wait until the clock or the network changes."
        case .certificate:
            title = "The server \(name) cannot be trusted"
            body =
                "\(message) A network with a login page can be the cause. Transfers to this server wait until the network changes."
        }
    }
}

/// The error if the app's executable is missing. The executable was deleted or moved, or its disk is not mounted.
package struct AppIsMissing: Error, Equatable, CustomStringConvertible {
    let path: String
    /// The app's name that the user sees.
    let name: String

    package init(path: String, name: String) { (self.path, self.name) = (path, name) }

    package var description: String { "\(path) was removed or cannot be run" }
}

extension AgentNotice {
    private static let missing = "missing."

    /// Returns `true` if the notification reports that an app cannot be started. The notification is outdated after the app was
    /// started with success.
    static func reportsMissingApp(_ notice: NotificationRecord) -> Bool { notice.identifier.hasPrefix(prefix + missing) }

    init(_ missing: AppIsMissing) {
        cause = Self.missing + missing.path
        title = "\(missing.name) cannot be started"
        body =
            "\(missing). The background work of \(missing.name) waits. "
            + "Put the program back, or start the program once from its new folder."
    }
}

extension Pass {
    mutating func show(_ notice: AgentNotice) throws {
        if let known = try transaction.notification(notice.identifier), !known.life.isWithdrawn,
            abs(now.timeIntervalSince(known.deliveredAt ?? now)) < AgentNotice.silence
        {
            return
        }
        try transaction.addNotification(notice.identifier, notice.content, dueAt: nil, now: now)
    }

    /// Withdraws the notification about a host if no transfer waits for the host any more. The reason is that the transfers that
    /// waited for the host were cancelled or held. If another transfer later waits for the host, a new notification is shown.
    mutating func withdrawSuspicions() throws {
        let transaction = transaction
        try retract { notice in
            guard !notice.life.isWithdrawn, let host = AgentNotice.suspectedHost(of: notice) else { return false }
            return try !transaction.isAnythingInTrouble(at: ["http://" + host, "https://" + host])
        }
    }

    /// Withdraws the agent's notifications whose cause has ended.
    ///
    /// - Parameter isOver: A function that returns `true` if the cause has ended. The function is called for each of the agent's
    ///   notifications.
    mutating func retract(_ isOver: (NotificationRecord) throws -> Bool) throws {
        let own = try transaction.notifications(beginning: AgentNotice.prefix)
        try transaction.retract(own.filter { try isOver($0) && !$0.life.isWithdrawn }, now: now)
    }
}
