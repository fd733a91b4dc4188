import BackgroundLedger
import Foundation

/// What an agent asks of the machine that it runs on, apart from its ports. Real, but in a rehearsal.
public struct AgentMachine: Sendable {
    /// The wall clock.
    public var now: @Sendable () -> Date
    /// Seconds that the machine has been awake.
    public var monotonic: @Sendable () -> Double
    /// Seconds that it has slept.
    public var slept: @Sendable () -> Double
    public var zone: @Sendable () -> TimeZone
    /// What launched processes find in their environment besides.
    public var environment: @Sendable () -> [String: String]

    public init(
        now: @escaping @Sendable () -> Date, monotonic: @escaping @Sendable () -> Double,
        slept: @escaping @Sendable () -> Double, zone: @escaping @Sendable () -> TimeZone,
        environment: @escaping @Sendable () -> [String: String]
    ) {
        (self.now, self.monotonic, self.slept) = (now, monotonic, slept)
        (self.zone, self.environment) = (zone, environment)
    }

    public static let real = AgentMachine(
        now: { Date() }, monotonic: Agent.awakeSeconds, slept: Agent.sleptSeconds, zone: { ThisProcess.zone },
        environment: { [:] })
}
