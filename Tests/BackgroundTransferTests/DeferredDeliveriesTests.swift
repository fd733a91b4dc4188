import Foundation
import Synchronization
import Testing

@testable import BackgroundTransfer

/// Tests of deliveries that wait for a delegate or for a reader.
@Suite struct DeferredDeliveriesTests {
    private func bytes(_ deliveries: [Delivery]) -> [String] {
        deliveries.map { delivery in
            switch delivery {
            case .call: "call"
            case .bytes(let data): String(decoding: data, as: UTF8.self)
            }
        }
    }

    private func bytes(_ text: String) -> Delivery { .bytes(Data(text.utf8)) }

    @Test func `deliveries are not kept while nothing delays them`() {
        var deferred = DeferredDeliveries()
        let (isKept, cost) = deferred.keep(bytes("ab"))
        #expect(!isKept && cost == 2 + Delivery.costOfPiece)
        #expect(deferred.answer().isEmpty && deferred.release().isEmpty)
    }

    /// If only a few pieces of a body wait, the pieces are not merged.
    @Test func `adjacent pieces are merged if many pieces wait`() {
        var deferred = DeferredDeliveries()
        deferred.waitForDecision()
        for _ in 1..<DeferredDeliveries.mostApart { #expect(deferred.keep(bytes("x")).cost == 1 + Delivery.costOfPiece) }
        let costs = [bytes("a"), bytes("b"), .call {}, bytes("c"), bytes("d")].map { deferred.keep($0).cost }
        #expect(costs == [1 + Delivery.costOfPiece, 1, 0, 1 + Delivery.costOfPiece, 1])
        let due = Array(deferred.answer().dropFirst(DeferredDeliveries.mostApart - 1))
        #expect(bytes(due) == ["ab", "call", "cd"] && due.map(\.cost).reduce(0, +) == costs.reduce(0, +))
        #expect(!deferred.keep(bytes("e")).isKept)
    }

    /// The call with the response headers waits only if the app has suspended the task.
    @Test func `the response headers are delivered before the body that waits for a decision`() {
        var deferred = DeferredDeliveries()
        deferred.hold()
        deferred.waitForDecision()
        #expect(deferred.keep(bytes("body")).isKept)
        #expect(deferred.keep(.call {}, isHead: true).isKept)
        #expect(bytes(deferred.release()) == ["call"])
        deferred.hold()
        #expect(deferred.answer().isEmpty)
        #expect(deferred.keep(bytes(" and more")).isKept)
        #expect(bytes(deferred.release()).joined() == "body and more")
    }

    /// A server may send a body in any number of pieces. The amount of work must not grow with the square of this number.
    @Test func `a reader receives all waiting bytes at once`() async throws {
        let feed = ByteFeed()
        let wentOn = Mutex(0)
        feed.onRoom { wentOn.withLock { $0 += 1 } }
        let count = 400_000
        let piece = Data(repeating: 1, count: 3)
        for _ in 0..<count { feed.receive(piece) }
        #expect(feed.isFull && feed.waitingCount == 3 * count)
        #expect(try await feed.next()?.count == 3 * count)
        #expect(!feed.isFull && wentOn.withLock { $0 } == 1)
        feed.end(nil)
        #expect(try await feed.next() == nil)
    }
}
