import Foundation

/// Which of the notifications that may be shown now are shown by themselves, and which a summary tells of: nobody reads a thousand.
///
/// A bucket of tokens bounds how many are shown by themselves. Pure: who waits comes in, what happens to each comes out.
package struct NoticeFlow: Equatable, Sendable {
    /// So many are shown at once.
    package static let capacity = 5
    /// Seconds after which one more may be.
    package static let refill: Double = 15
    /// So many summaries by thread at most; what is left shares one.
    private static let longestList = 3

    /// One that waits to be told for the first time.
    package struct Waiting: Equatable, Sendable {
        package var identifier: String
        /// Of its app; those of one thread share a summary.
        package var thread: String
        /// It came, or was due, in quiet hours that are over.
        package var wasHeldBack: Bool

        package init(identifier: String, thread: String, wasHeldBack: Bool) {
            (self.identifier, self.thread, self.wasHeldBack) = (identifier, thread, wasHeldBack)
        }
    }

    /// What a summary is of.
    package enum Group: Hashable, Sendable {
        /// What came while it was quiet.
        case quietHours
        /// Of one thread, of which more came than a person reads.
        case thread(String)
        /// Of many.
        case many
    }

    package struct Decision: Equatable, Sendable {
        package var show: [String] = []
        package var gather: [Group: [String]] = [:]
        /// Seconds until one that stays waiting may be shown; `nil`: none waits.
        package var pause: Double?
    }

    /// Tokens that are there, and since when, in seconds awake.
    private var tokens = Double(capacity)
    private var countedAt: Double?

    package init() {}

    /// - Parameters:
    ///   - waiting: in the order in which they are to be told.
    ///   - gathering: groups whose summary stands on the screen: more of such a group go there.
    ///   - awake: seconds, on a clock that nobody sets.
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

    /// One that was let through was not shown.
    package mutating func giveBack() { tokens = min(tokens + 1, Double(Self.capacity)) }

    private mutating func refill(_ awake: Double) {
        if let countedAt, awake > countedAt { tokens = min(tokens + (awake - countedAt) / Self.refill, Double(Self.capacity)) }
        countedAt = awake
    }

    /// One alone waits for its token: a summary of one says less than it does.
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
