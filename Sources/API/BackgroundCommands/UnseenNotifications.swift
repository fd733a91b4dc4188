import BackgroundLedger
import BackgroundRuntime
import Foundation

/// The app's notifications that the user has not seen, because they could not be shown, or because the desktop removed them from
/// the screen.
package struct UnseenNotifications: Sendable {
    package struct One: Sendable, Equatable {
        package let title: String
        /// The reason why the notification was not shown. `nil` if the notification was shown, and was removed from the screen at
        /// the date ``at``.
        package let trouble: String?
        package let at: Date
        fileprivate let mark: String
    }

    /// The notifications that could not be shown or that the desktop removed, newest last.
    package let all: [One]
    /// The notifications of ``all`` that `status` has not listed yet.
    package let new: [One]
    /// The date since which do-not-disturb is on, or `nil` if do-not-disturb is off.
    package let quietSince: Date?

    package static func current() throws -> UnseenNotifications {
        try AppRuntime.shared.ledger().read { transaction in
            let now = AppRuntime.shared.now
            let listed = Set(try transaction.fact(.noticesListed) ?? [])
            let all = try transaction.notifications().compactMap { One($0, now: now) }
            return UnseenNotifications(
                all: all, new: all.filter { !listed.contains($0.mark) }, quietSince: try transaction.fact(.doNotDisturbSince))
        }
    }

    /// Records that the user has read the list of notifications in a terminal, so that other commands print no reminder of these
    /// notifications.
    private func recordListRead() {
        guard !new.isEmpty else { return }
        DurableWrites.shared.commit("the list of shown notifications", startsAgent: false) { [all] in
            try $0.setFact(.noticesListed, all.map(\.mark).sorted())
        }
    }

    /// The maximum number of notifications in the list.
    private static let longestList = 5

    /// Prints the list of notifications for `status`. If the output is a terminal, the method also records that the user has read
    /// the list.
    ///
    /// - Returns: `true` if the method printed a list.
    @discardableResult
    package static func list() -> Bool {
        guard let unseen = try? current() else { return false }
        let lines = unseen.lines
        for line in lines { Output.line(line) }
        if Terminal.isTerminal(STDOUT_FILENO) { unseen.recordListRead() }
        return !lines.isEmpty
    }

    private var lines: [String] {
        // A notification that the desktop removed from the screen is listed only until the user has read it once.
        let listed = all.filter { $0.trouble != nil } + new.filter { $0.trouble == nil }
        var lines = listed.suffix(Self.longestList).map { one in
            let words = Output.oneLine(one.title)
            guard let trouble = one.trouble else {
                return "Unseen      \(words), removed from the screen \(Output.relative(one.at))"
            }
            return "Not shown   \(words): \(trouble)"
        }
        if listed.count > lines.count { lines.insert("Unseen      \(listed.count - lines.count) more", at: 0) }
        if let quietSince {
            lines.append("Do not disturb is on since \(Output.moment(quietSince)), so the desktop shows no notifications")
        }
        return lines
    }

    /// Returns a reminder for the output of other commands in a terminal, or `nil` if no notification is new.
    package func reminder(program: String) -> String? {
        let hidden = new.filter { $0.trouble != nil }
        guard let last = hidden.last else { return nil }
        let others = hidden.count > 1 ? " and \(hidden.count - 1) more" : ""
        return "\(program): a notification was not shown yet: \(last.title)\(others): \(last.trouble ?? ""). "
            + "`\(program) status` lists these notifications."
    }
}

extension UnseenNotifications.One {
    fileprivate init?(_ record: NotificationRecord, now: Date) {
        // A notification whose expiration date has passed is not listed.
        guard record.until.map({ $0 > now }) ?? true else { return nil }
        switch record.state {
        case .pending, .presenting:
            guard record.life.isUnreported, record.dueAt ?? now <= now, let why = record.trouble else { return nil }
            (trouble, at) = (why, record.createdAt)
        case .delivered where record.life.isHidden:
            (trouble, at) = (record.trouble ?? "the notification is hidden", record.createdAt)
        case .expired: (trouble, at) = (nil, record.endedAt ?? record.createdAt)
        case .delivered, .gathered, .closed, .over, .withdrawing, .withdrawn: return nil
        }
        title = [record.content.title, record.content.body].first { !$0.isEmpty } ?? record.identifier
        mark = "\(record.revision) \(record.identifier)"
    }
}
