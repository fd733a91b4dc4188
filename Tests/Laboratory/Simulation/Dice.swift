import Synchronization

/// Random numbers that depend only on a seed (SplitMix64). Only one thread at a time uses the generator. The lock only makes the
/// type `Sendable`.
final class Dice: RandomNumberGenerator, Sendable {
    private let state: Mutex<UInt64>

    /// The seed is mixed first. Without mixing, the next seed would produce the same numbers, shifted by one.
    init(seed: UInt64) { state = Mutex(Self.mix(seed &+ 0x1234_5678_9ABC_DEF1)) }

    func next() -> UInt64 {
        state.withLock { state in
            state &+= 0x9E37_79B9_7F4A_7C15
            return Self.mix(state)
        }
    }

    private static func mix(_ value: UInt64) -> UInt64 {
        var mixed = value
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// A number from 0 up to 1. The value 1 is not included.
    var unit: Double { Double(next() >> 11) / Double(1 << 53) }

    func chance(_ probability: Double) -> Bool { unit < probability }

    func between(_ low: Double, _ high: Double) -> Double { low + unit * (high - low) }

    func number(_ range: Range<Int>) -> Int { range.lowerBound + Int(next() % UInt64(range.count)) }

    func one<Value>(of values: [Value]) -> Value { values[number(0..<values.count)] }
}
