import Foundation

/// Decides which notifications are shown individually, and which notifications are combined in a summary. The user therefore
/// never sees too many notifications at the same time.
///
/// A token bucket limits how many notifications are shown individually. The type is pure: it receives the list of waiting
/// notifications and returns a decision.
package struct NoticeFlow: Equatable, Sendable {
    /// The maximum number of notifications that are shown individually without a pause between them.
    package static let capacity = 5
    /// The number of seconds after which one more notification can be shown individually.
    package static let refill: Double = 15
    /// The maximum number of notification threads that have a separate summary. The notifications of all other threads share one
    /// summary.
    private static let longestList = 3

    /// A notification that waits to be shown for the first time.
    package struct Waiting: Equatable, Sendable {
        package var identifier: String
        /// The app's identifier for a group of related notifications (a notification thread). Notifications with an equal
        /// identifier share a summary.
        package var thread: String
        /// `true` if the notification arrived or became due during quiet hours, and these quiet hours have ended.
        package var wasHeldBack: Bool

        package init(identifier: String, thread: String, wasHeldBack: Bool) {
            (self.identifier, self.thread, self.wasHeldBack) = (identifier, thread, wasHeldBack)
        }
    }

    /// The notifications that a summary combines.
    package enum Group: Hashable, Sendable {
        /// The notifications that arrived in quiet hours.
        case quietHours
        /// The notifications of one thread, if more notifications of this thread arrived than can be shown individually.
        case thread(String)
        /// All notifications that are in no other group.
        case many
    }

    package struct Decision: Equatable, Sendable {
        package var show: [String] = []
        package var gather: [Group: [String]] = [:]
        /// The number of seconds until the next waiting notification can be shown individually. `nil` if no notification waits.
        package var pause: Double?
    }

    /// The number of available tokens. `countedAt` is the time at which the tokens were last counted, in seconds of the clock
    /// that stops during sleep.
    private var tokens = Double(capacity)
    private var countedAt: Double?

    package init() {}

    /// Decides what happens to each waiting notification.
    ///
    /// - Parameters:
    ///   - waiting: The waiting notifications, in the order in which they will be shown.
    ///   - gathering: The groups whose summary is on the screen. If more notifications of such a group arrive, they are added to
    ///     its summary.
    ///   - awake: The number of seconds for which the machine was awake, from a clock that cannot be set.
    package mutating func decide(_ waiting: [Waiting], gathering: Set<Group>, awake: Double) -> Decision {
        refill(awake)
        var decision = Decision()
        let held = waiting.filter(\.wasHeldBack)
        if held.count > 1 || gathering.contains(.quietHours) && !held.isEmpty {
            decision.gather[.quietHours] = held.map(\.identifier)
        }
        let others = waiting.filter { !(decision.gather[.quietHours]?.contains($0.identifier) ?? false) }
        let fitting = min(others.count, Int(tokens))
        decision.show = others.prefix(fitting).map(\.identifier)
        tokens -= Double(fitting)
        gatherRest(Array(others.dropFirst(fitting)), gathering, &decision)
        return decision
    }

    /// Puts the token of a notification back into the bucket, because the notification was not shown although the decision
    /// allowed it.
    package mutating func revert() { tokens = min(tokens + 1, Double(Self.capacity)) }

    private mutating func refill(_ awake: Double) {
        if let countedAt, awake > countedAt { tokens = min(tokens + (awake - countedAt) / Self.refill, Double(Self.capacity)) }
        countedAt = awake
    }

    /// Combines the notifications that got no token into summaries. If only one such notification exists, it waits for a token,
    /// because a summary of one notification shows less than the notification itself.
    private func gatherRest(_ rest: [Waiting], _ gathering: Set<Group>, _ decision: inout Decision) {
        let threads = Dictionary(grouping: rest.filter { !$0.thread.isEmpty }, by: \.thread)
        let many = threads.filter { $0.value.count > 1 || gathering.contains(.thread($0.key)) }
        let own = many.sorted { ($1.value.count, $0.key) < ($0.value.count, $1.key) }.prefix(Self.longestList).map(\.key)
        for thread in own { decision.gather[.thread(thread)] = threads[thread]?.map(\.identifier) }
        let last = rest.filter { !own.contains($0.thread) }
        if last.count > 1 || gathering.contains(.many) && !last.isEmpty {
            decision.gather[.many] = last.map(\.identifier)
        } else if !last.isEmpty {
            decision.pause = (1 - tokens) * Self.refill
        }
    }
}
