/// A limit in bytes per second for all requests that share the limit.
///
/// Requests wait in a queue, and each request gets its turn. Bytes that no request used can be used later, up to the number of
/// bytes that a quarter of a second allows.
package struct RateBucket<ID: Hashable & Sendable>: Sendable {
    private var rate: Double
    private var level: Double
    /// The time at which `level` (the number of available bytes) was last computed.
    private var time: Double
    private var line: [ID] = []
    /// The bytes that are reserved for requests whose turn has come.
    private var grants: [ID: Int] = [:]

    /// - Parameter now: The current number of seconds on a clock that cannot be set.
    package init(bytesPerSecond: Int64, now: Double) {
        (rate, time, level) = (Double(max(1, bytesPerSecond)), now, 0)
        level = capacity
    }

    private var capacity: Double { max(1, rate / 4) }
    /// The minimum number of bytes that a request gets at its turn. If no request is waiting, a request gets at most this number
    /// of bytes without a turn.
    private var quantum: Int { Int(max(1, min(16_384, rate / 8))) }
    /// The number of available bytes at which the waiting requests get their turns. At a high rate, this number is reached 20
    /// times per second.
    private var threshold: Double { min(capacity, max(Double(quantum), rate / 20)) }

    package mutating func set(bytesPerSecond: Int64, now: Double) {
        refill(now)
        rate = Double(max(1, bytesPerSecond))
        level = min(level, capacity)
    }

    /// Takes up to `count` bytes for a request.
    ///
    /// - Returns: 0 if the request has to wait for its turn.
    package mutating func consume(_ count: Int, for id: ID, now: Double) -> Int {
        refill(now)
        if let grant = grants[id] {
            let taken = min(grant, count)
            grants[id] = taken < grant ? grant - taken : nil
            return taken
        }
        let taken = min(count, quantum)
        guard line.isEmpty, has(Double(taken)) else {
            if !line.contains(id) { line.append(id) }
            return 0
        }
        level -= Double(taken)
        return taken
    }

    /// Returns the requests whose turn has come, in their order. Each of these requests can consume bytes now.
    package mutating func turns(now: Double) -> [ID] {
        refill(now)
        guard !line.isEmpty, has(threshold) else { return [] }
        let share = max(quantum, Int(level) / line.count)
        var turns: [ID] = []
        while !line.isEmpty, has(Double(share)) {
            let id = line.removeFirst()
            grants[id] = share
            level -= Double(share)
            turns.append(id)
        }
        return turns
    }

    /// The time at which the next waiting request gets its turn. `nil` if no request waits.
    package var nextTurn: Double? { line.isEmpty ? nil : time + max(0, threshold - level) / rate }

    /// Removes a request that has ended or has sent all bytes.
    package mutating func remove(_ id: ID) {
        line.removeAll { $0 == id }
        level += Double(grants.removeValue(forKey: id) ?? 0)
    }

    /// Returns whether the bucket has the state of a new bucket.
    package func isFull(now: Double) -> Bool { line.isEmpty && grants.isEmpty && level + (now - time) * rate >= capacity }

    private mutating func refill(_ now: Double) {
        level = min(capacity, level + max(0, now - time) * rate)
        time = max(time, now)
    }

    /// Returns whether the bucket contains this many bytes. The comparison has a tolerance, because sums of fractions are not
    /// exact.
    private func has(_ bytes: Double) -> Bool { level >= bytes - 0.001 }
}
