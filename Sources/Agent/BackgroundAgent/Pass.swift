import ProcessSupport
import BackgroundLedger
import BackgroundScheduling
import Foundation

/// What the clocks of the host say at one instant.
struct Moment {
    /// The wall clock.
    let now: Date
    /// Seconds that the host has been awake.
    let awake: Double
    /// Seconds that it has slept.
    let slept: Double
    let zone: TimeZone

    init(of host: HostEnvironment, zone: TimeZone) {
        (now, awake, slept) = (host.now(), host.monotonic(), host.slept())
        self.zone = zone
    }

    /// What the wall clock will show then, unless somebody sets it. A little later: what wakes has to find it past.
    func date(atAwake seconds: Double) -> Date { now.addingTimeInterval(seconds - awake + 0.001) }
}

/// One look at the ledger, inside its write transaction: what the parts decide with, and what follows once it is committed.
///
/// Nothing in a pass touches a file, a process or a socket: apps wait for this transaction.
struct Pass {
    let transaction: LedgerTransaction
    let settings: AgentSettings
    let moment: Moment
    /// What the desktop is like, known or guessed: ``Conditions`` says which.
    let desktop: DesktopConditions
    let directories: AppDirectories
    /// What is to be done once this pass is committed, in this order.
    private(set) var effects: [AgentEffect] = []
    /// When the next pass is due at the latest; `nil`: time alone makes none due.
    private(set) var wake: Date?
    /// For the log, written once this pass is committed.
    private(set) var entries: [LogEntry] = []
    /// Transfers that ended in this pass.
    private(set) var endedTransfers: [Int64] = []
    /// A number from 0 up to 1: retries are spread by it.
    private let random: () -> Double

    init(
        _ transaction: LedgerTransaction, _ settings: AgentSettings, _ moment: Moment, _ desktop: DesktopConditions,
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

    mutating func noteEnded(_ transfer: TransferRecord) { if let id = transfer.id { endedTransfers.append(id) } }

    /// Never quite nothing: full jitter alone may allow an attempt without any pause.
    func jitter() -> Double { 0.2 + 0.8 * random() }
}

extension Pass {
    func handle(_ event: RequestLife.Event, _ request: inout RequestRecord) throws -> [RequestLife.Command] {
        try transaction.handle(event, &request, now: now, in: zone)
    }

    /// A launch begins: its row now, its process once the row is committed.
    mutating func begin(_ launch: LaunchRecord) throws {
        let launch = try transaction.insert(launch)
        guard let id = launch.id else { return }
        perform(.startLaunch(id))
    }

    /// A launch that began after something waited and left it waiting failed: it is repeated with growing pauses, and nothing is
    /// dropped. `nil`: not yet, and the pass wakes when.
    ///
    /// - Parameter failures: earlier launches in a row that did not help, newest first.
    mutating func generation(after failures: some Collection<LaunchRecord>) -> Int? {
        if let end = failures.endOfRelaunchPause(base: settings.backoffBase), end > now {
            wake(at: end)
            return nil
        }
        return failures.count + 1
    }
}
