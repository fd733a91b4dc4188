import Testing
import TransferMachines

/// Several requests that send as fast as their common limit permits, in virtual time.
private struct Senders {
    private(set) var bucket: RateBucket<Int>
    private(set) var now = 0.0
    private(set) var sent: [Int: Int] = [:]
    private(set) var left: [Int: Int] = [:]
    /// For each time: the total number of bytes that were sent up to this time.
    private(set) var moments: [(time: Double, total: Int)] = [(0, 0)]

    init(_ rate: Int64) { bucket = RateBucket(bytesPerSecond: rate, now: 0) }

    mutating func begin(_ id: Int, _ bytes: Int) {
        left[id] = bytes
        send(id)
    }

    mutating func end(_ id: Int) {
        left[id] = nil
        bucket.remove(id)
    }

    mutating func set(_ rate: Int64) { bucket.set(bytesPerSecond: rate, now: now) }

    /// Runs until all bytes are sent, or until `end`.
    mutating func run(until end: Double = .infinity) {
        while let next = bucket.nextTurn, next <= end {
            now = max(now, next)
            for id in bucket.turns(now: now) { send(id) }
        }
        if end < .infinity { now = end }
    }

    private mutating func send(_ id: Int) {
        while let rest = left[id], rest > 0 {
            let count = bucket.consume(min(rest, 16_384), for: id, now: now)
            guard count > 0 else { return }
            left[id] = rest - count
            sent[id, default: 0] += count
            moments.append((now, moments[moments.count - 1].total + count))
        }
        end(id)
    }

    /// Returns the maximum number of bytes in any period of `seconds`.
    func most(in seconds: Double) -> Int {
        var (most, first) = (0, 0)
        for last in moments.indices {
            while moments[last].time - moments[first].time > seconds { first += 1 }
            most = max(most, moments[last].total - moments[max(0, first - 1)].total)
        }
        return most
    }
}

@Suite struct RateBucketTests {
    private static let rates: [Int64] = [1, 125, 10_000, 250_000, 12_500_000]

    @Test(arguments: rates) func `one request alone gets the complete limit`(_ rate: Int64) {
        var senders = Senders(rate)
        senders.begin(1, Int(rate) * 10)
        senders.run()
        #expect(senders.sent[1] == Int(rate) * 10)
        // At the start, the bytes of a quarter of a second can be sent immediately.
        #expect((8.9...10.1).contains(senders.now), "\(senders.now)")
    }

    @Test(arguments: rates, [1, 7, 40]) func `the sum of all requests keeps the limit and none starves`(
        _ rate: Int64, _ count: Int
    ) {
        var senders = Senders(rate)
        for id in 0..<count { senders.begin(id, Int(rate) * 100) }
        senders.run(until: 50)
        let total = senders.sent.values.reduce(0, +)
        #expect((Double(rate) * 49...Double(rate) * 50 + max(1, Double(rate) / 4)).contains(Double(total)), "\(total)")
        #expect(Double(senders.most(in: 5)) <= Double(rate) * 5 + max(1, Double(rate) / 4) + 16_384)
        let shares = (0..<count).map { senders.sent[$0] ?? 0 }
        #expect((shares.max() ?? 0) - (shares.min() ?? 0) <= Int(rate) / 4 + 2 * 16_384 && (shares.min() ?? 0) > 0, "\(shares)")
        // The remaining requests share the limit.
        for id in 2..<max(2, count) { senders.end(id) }
        senders.run(until: 60)
        #expect(Double(senders.sent.values.reduce(0, +) - total) >= Double(rate) * 9)
    }

    /// A single small request fits into a buffer, so the limit would not delay it.
    @Test func `many small requests one after the other keep the limit`() {
        var senders = Senders(10_000)
        for id in 0..<500 {
            senders.begin(id, 1_000)
            senders.run()
        }
        #expect(senders.sent.values.reduce(0, +) == 500_000 && (49.0...50).contains(senders.now), "\(senders.now)")
    }

    @Test func `a request that ends gives its turn back`() {
        var bucket = RateBucket<Int>(bytesPerSecond: 4_000, now: 0)
        let first = [1, 1, 1, 2].map { bucket.consume(5_000, for: $0, now: 0) }
        #expect(first == [500, 500, 0, 0] && bucket.nextTurn == 0.125)
        let early = bucket.turns(now: 0.1)
        let turns = bucket.turns(now: 0.125)
        #expect(early == [] && turns == [1])
        bucket.remove(1)
        let next = bucket.turns(now: 0.125)
        let taken = bucket.consume(300, for: 2, now: 0.125)
        #expect(next == [2] && taken == 300 && bucket.nextTurn == nil)
        let none = bucket.consume(5_000, for: 3, now: 0.125)
        #expect(none == 0 && !bucket.isFull(now: 1))
        bucket.remove(3)
        bucket.remove(2)
        #expect(bucket.isFull(now: 1))
    }

    @Test func `a new limit holds at once`() {
        var senders = Senders(1_000)
        senders.begin(1, 1_000_000)
        senders.run(until: 10)
        let before = senders.sent[1] ?? 0
        senders.set(100_000)
        senders.run(until: 12)
        let after = (senders.sent[1] ?? 0) - before
        #expect((170_000...225_000).contains(after), "\(after)")
    }
}
