import BackgroundLedger
import BackgroundRuntime
import Foundation

/// What the person has not seen of an app's notifications: nobody could show it, or the desktop took it off the screen by itself.
package struct UnseenNotifications: Sendable {
    package struct One: Sendable, Equatable {
        package let title: String
        /// `nil`: it was shown, and left the screen at ``at``.
        package let trouble: String?
        package let at: Date
        fileprivate let mark: String
    }

    /// Nobody could show them, or they left the screen by themselves; newest last.
    package let all: [One]
    /// Those of ``all`` that `status` has not listed yet.
    package let new: [One]
    /// Since when the desktop shows nothing at the person's wish; `nil`: it shows what it is given.
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

    /// The person has read them in a terminal: no verb tells of them any more.
    private func noteListed() {
        guard !new.isEmpty else { return }
        DurableWrites.shared.commit("which notifications were listed", startsAgent: false) { [all] in
            try $0.setFact(.noticesListed, all.map(\.mark).sorted())
        }
    }

    /// So many are named.
    private static let longestList = 5

    /// What `status` prints; in a terminal the person has read it then.
    package static func list() {
        guard let unseen = try? current() else { return }
        for line in unseen.lines { Output.line(line) }
        if Output.isTerminal { unseen.noteListed() }
    }

    private var lines: [String] {
        // What left the screen by itself is told once.
        let listed = all.filter { $0.trouble != nil } + new.filter { $0.trouble == nil }
        var lines = listed.suffix(Self.longestList).map { one in
            let words = Output.oneLine(one.title)
            guard let trouble = one.trouble else { return "Unseen      \(words), left the screen \(Output.relative(one.at))" }
            return "Not shown   \(words): \(trouble)"
        }
        if listed.count > lines.count { lines.insert("Unseen      \(listed.count - lines.count) more", at: 0) }
        if let quietSince { lines.append("Do not disturb is on since \(Output.moment(quietSince)): the desktop shows nothing") }
        return lines
    }

    /// One line behind any other verb, in a terminal; `nil`: there is nothing to say.
    package func reminder(program: String) -> String? {
        let hidden = new.filter { $0.trouble != nil }
        guard let last = hidden.last else { return nil }
        let others = hidden.count > 1 ? " and \(hidden.count - 1) more" : ""
        return "\(program): not shown yet: \(last.title)\(others): \(last.trouble ?? ""). `\(program) status` lists all."
    }
}

extension UnseenNotifications.One {
    fileprivate init?(_ record: NotificationRecord, now: Date) {
        // What is about a time that is over is news to nobody.
        guard record.until.map({ $0 > now }) ?? true else { return nil }
        switch record.state {
        case .pending, .presenting:
            guard record.life.isUntold, record.dueAt ?? now <= now, let why = record.trouble else { return nil }
            (trouble, at) = (why, record.createdAt)
        case .delivered where record.life.isHidden: (trouble, at) = (record.trouble ?? "it is hidden", record.createdAt)
        case .expired: (trouble, at) = (nil, record.endedAt ?? record.createdAt)
        case .delivered, .gathered, .closed, .over, .withdrawing, .withdrawn: return nil
        }
        title = [record.content.title, record.content.body].first { !$0.isEmpty } ?? record.identifier
        mark = "\(record.revision) \(record.identifier)"
    }
}
