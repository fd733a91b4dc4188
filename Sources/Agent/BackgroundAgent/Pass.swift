import ProcessSupport
import BackgroundLedger
import BackgroundScheduling
import Foundation

/// The values of all clocks of the machine at one time.
struct ClockReading {
    /// The time of the wall clock.
    let now: Date
    /// The number of seconds for which the host was awake.
    let awake: Double
    /// The number of seconds for which the host slept.
    let slept: Double
    let zone: TimeZone

    init(of host: HostEnvironment, zone: TimeZone) {
        (now, awake, slept) = (host.now(), host.monotonic(), host.slept())
        self.zone = zone
    }

    /// Converts a later time on the clock that stops during sleep to a date on the wall clock. The result is correct if the
    /// machine does not sleep and no program sets the clock until then. The result is slightly later, so that the time has passed
    /// at the wake-up.
    func date(atAwake seconds: Double) -> Date { now.addingTimeInterval(seconds - awake + 0.001) }
}

/// One pass over the ledger, inside a write transaction of the ledger. A pass contains the data for the parts' decisions, and the
/// actions that follow the commit.
///
/// A pass does not use files, processes or sockets, because apps wait for the end of this transaction.
struct Pass {
    let transaction: LedgerTransaction
    let settings: AgentSettings
    let moment: ClockReading
    /// The conditions of the desktop, which are known or assumed (see ``Conditions``).
    let desktop: DesktopConditions
    let directories: AppDirectories
    /// The actions that the agent performs in this order after the commit of this pass.
    private(set) var effects: [AgentEffect] = []
    /// The latest date of the next pass. `nil` if no pass becomes due at a known date.
    private(set) var wake: Date?
    /// The log entries that the agent writes after the commit of this pass.
    private(set) var entries: [LogEntry] = []
    /// The transfers that ended in this pass.
    private(set) var endedTransfers: [Int64] = []
    /// Returns a random number from 0 up to 1, which spreads retries over time.
    private let random: () -> Double

    init(
        _ transaction: LedgerTransaction, _ settings: AgentSettings, _ moment: ClockReading, _ desktop: DesktopConditions,
        _ directories: AppDirectories, random: @escaping () -> Double
    ) {
        self.random = random
        (self.transaction, self.settings, self.moment) = (transaction, settings, moment)
        (self.desktop, self.directories) = (desktop, directories)
    }

    var now: Date { moment.now }
    var zone: TimeZone { moment.zone }
    var spool: URL { directories.spool }

    mutating func wake(at date: Date?) {
        guard let date else { return }
        wake = min(wake ?? date, date)
    }

    mutating func perform(_ effect: AgentEffect) { effects.append(effect) }

    mutating func log(_ message: LogMessage, _ values: (LogField, any CustomStringConvertible)...) {
        entries.append(LogEntry(message, values))
    }

    mutating func recordEndedTransfer(_ transfer: TransferRecord) { if let id = transfer.id { endedTransfers.append(id) } }

    /// Returns a random factor for pauses. The factor is at least 0.2, because a factor near 0 would allow an attempt without a
    /// pause.
    func jitter() -> Double { 0.2 + 0.8 * random() }
}

extension Pass {
    func handle(_ event: RequestLife.Event, _ request: inout RequestRecord) throws -> [RequestLife.Command] {
        try transaction.handle(event, &request, now: now, in: zone)
    }

    /// Begins a launch. The row is written now, and the process starts after the commit.
    mutating func begin(_ launch: LaunchRecord) throws {
        let launch = try transaction.insert(launch)
        guard let id = launch.id else { return }
        perform(.startLaunch(id))
    }

    /// Returns the generation of the next launch. Returns `nil` during a pause. Another pass then starts at the end of the pause.
    /// A launch that did not handle the waiting work has failed. The launch is repeated after growing pauses, so no work is lost.
    ///
    /// - Parameter failures: the earlier consecutive launches that failed, from the newest to the oldest.
    mutating func generation(after failures: some Collection<LaunchRecord>) -> Int? {
        if let end = failures.endOfRelaunchPause(base: settings.backoffBase), end > now {
            wake(at: end)
            return nil
        }
        return failures.count + 1
    }
}
