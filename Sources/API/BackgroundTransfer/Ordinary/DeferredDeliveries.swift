import Foundation

/// What a delegate hears.
enum Delivery: Sendable {
    case call(@Sendable () -> Void)
    /// Of the answer's body.
    case bytes(Data)

    /// Bytes of memory that a piece takes beside its own, about.
    static let costOfPiece = 64

    /// What it counts for in the backlog of a body.
    var cost: Int {
        switch self {
        case .call: 0
        case .bytes(let data): data.count + Self.costOfPiece
        }
    }
}

/// Keeps what a delegate may not hear yet, in order: while it has not answered about the head, or the app holds the task. Of many
/// pieces neighbours become one.
struct DeferredDeliveries: Sendable {
    /// So many stay as they came.
    static let mostApart = 64
    /// Bytes of a piece that others are added to.
    private static let longestPiece = 1 << 20

    /// The delegate was asked about the head, and has not answered.
    private(set) var isAsking = false
    private(set) var isHeld = false
    /// What follows the head, until the answer.
    private var unanswered: [Delivery] = []
    /// What is due as soon as the app lets go.
    private var withheld: [Delivery] = []

    /// From here on everything but the head waits for the answer.
    mutating func ask() { isAsking = true }

    mutating func hold() { isHeld = true }

    /// - Parameter isHead: the question itself, which does not wait for its answer.
    /// - Returns: whether it is kept, and what it adds to the backlog.
    mutating func keep(_ delivery: Delivery, isHead: Bool = false) -> (isKept: Bool, cost: Int) {
        if isAsking, !isHead { return (true, Self.add(delivery, to: &unanswered)) }
        if isHeld { return (true, Self.add(delivery, to: &withheld)) }
        return (false, delivery.cost)
    }

    /// The delegate has answered.
    ///
    /// - Returns: what it hears now.
    mutating func answer() -> [Delivery] {
        guard isAsking else { return [] }
        isAsking = false
        defer { unanswered = [] }
        guard isHeld else { return unanswered }
        withheld += unanswered
        return []
    }

    /// The app lets go.
    ///
    /// - Returns: what the delegate hears now.
    mutating func release() -> [Delivery] {
        isHeld = false
        defer { withheld = [] }
        return withheld
    }

    private static func add(_ delivery: Delivery, to kept: inout [Delivery]) -> Int {
        guard kept.count >= mostApart, case .bytes(let more) = delivery, case .bytes(var data) = kept.last,
            data.count < longestPiece
        else {
            kept.append(delivery)
            return delivery.cost
        }
        // Out of the array first: two owners would copy it.
        kept.removeLast()
        data.append(more)
        kept.append(.bytes(data))
        return more.count
    }
}
