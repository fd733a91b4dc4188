import Foundation

/// A delivery to the delegate: a call, or bytes of the response body.
enum Delivery: Sendable {
    case call(@Sendable () -> Void)
    /// Bytes of the response body.
    case bytes(Data)

    /// The approximate number of bytes of memory that a stored delivery needs in addition to its data.
    static let costOfPiece = 64

    /// The number of bytes that the delivery adds to the backlog (the received bytes of a body that the delegate has not
    /// received).
    var cost: Int {
        switch self {
        case .call: 0
        case .bytes(let data): data.count + Self.costOfPiece
        }
    }
}

/// The calls of the delegate that have to wait, in their order. Calls wait while the delegate has not decided about the response
/// headers, or while the task is suspended. If many deliveries wait, small pieces of a body are joined to larger ones.
struct DeferredDeliveries: Sendable {
    /// If at least this number of deliveries wait, new bytes of a body are appended to the last waiting bytes.
    static let mostApart = 64
    /// If the last waiting delivery has this number of bytes or more, no more bytes are appended to it.
    private static let longestPiece = 1 << 20

    /// `true` if the delegate was asked about the response headers, and has not decided.
    private(set) var isUndecided = false
    private(set) var isHeld = false
    /// The deliveries that wait for the delegate's decision about the response headers.
    private var unanswered: [Delivery] = []
    /// The deliveries that wait until the app resumes the task.
    private var withheld: [Delivery] = []

    /// Makes all later deliveries, except the response headers, wait for the delegate's decision.
    mutating func waitForDecision() { isUndecided = true }

    mutating func hold() { isHeld = true }

    /// - Parameter isHead: `true` if the delivery is the call that asks the delegate for the decision. This call does not wait
    ///   for the decision.
    /// - Returns: whether the delivery has to wait, and its cost in the backlog.
    mutating func keep(_ delivery: Delivery, isHead: Bool = false) -> (isKept: Bool, cost: Int) {
        if isUndecided, !isHead { return (true, Self.add(delivery, to: &unanswered)) }
        if isHeld { return (true, Self.add(delivery, to: &withheld)) }
        return (false, delivery.cost)
    }

    /// Records that the delegate has decided.
    ///
    /// - Returns: the deliveries that are due now.
    mutating func answer() -> [Delivery] {
        guard isUndecided else { return [] }
        isUndecided = false
        defer { unanswered = [] }
        guard isHeld else { return unanswered }
        withheld += unanswered
        return []
    }

    /// Records that the app resumed the task.
    ///
    /// - Returns: the deliveries that are due now.
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
        // The last delivery is removed from the array before `append`, because `append` would copy data to which the array also
        // refers.
        kept.removeLast()
        data.append(more)
        kept.append(.bytes(data))
        return more.count
    }
}
