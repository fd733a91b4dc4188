import BackgroundLedger
import BackgroundScheduling
import BackgroundTasksTesting
import Foundation

// Thirty days with many faults: wrong clocks, frozen servers, disk faults, weeks without use, restored backups, and mistakes in
// the configuration.

/// The faults that are present, and that have to be corrected at the end.
struct Trouble {
    /// The number of seconds by which the wall clock is wrong.
    var clockError = 0.0
    /// The time when the ledger can be written again, in waking seconds. A fault of some hours is long enough, because an agent
    /// tries each minute.
    var ledgerTroubleEnds: Double?
    var backup: Backup?
    /// The number of times that the ledger was restored from a backup.
    var restorations = 0

    struct Backup {
        let ledger: Ledger.Backup
        let memory: SimulatedApp.Memory
    }
}

extension Simulation {
    /// The length of a month in seconds.
    static var month: Double { 30 * 86_400 }

    /// Lets thirty days with faults pass.
    func liveThroughAMonth() throws {
        let end = machine.clock.awake + machine.clock.slept + Self.month
        while machine.clock.awake + machine.clock.slept < end, watch.broken.isEmpty {
            if dice.chance(0.5) { try happen() } else { try worsen() }
            try machine.run()
            // Half of the pauses are long, so that faults occur at every time of a day.
            let pause = dice.chance(0.5) ? dice.between(0.1, 600) : dice.between(600, 60_000)
            try passThroughTrouble(min(pause, max(0, end - machine.clock.awake - machine.clock.slept)))
        }
    }

    private func passThroughTrouble(_ seconds: Double) throws {
        guard let ends = trouble.ledgerTroubleEnds, ends - machine.clock.awake < seconds else { return try pass(seconds) }
        let first = max(0, ends - machine.clock.awake)
        try pass(first)
        endLedgerTrouble()
        try pass(seconds - first)
    }

    private func endLedgerTrouble() {
        machine.log("the ledger can be written")
        trouble.ledgerTroubleEnds = nil
        machine.troubleLedger(nil)
    }

    private func worsen() throws {
        switch dice.number(0..<15) {
        case 0: try setClockWrong()
        case 1: try setClockRight()
        case 2: try machine.switchOff(dice.between(3_600, 14 * 86_400))
        case 3: try machine.suspend(dice.between(3_600, 9 * 86_400))
        case 4:
            machine.log("the ledger cannot be written")
            trouble.ledgerTroubleEnds = machine.clock.awake + dice.between(1, 8_000)
            machine.troubleLedger(dice.one(of: [.diskFull(path: "ledger"), .troubled(path: "ledger", reason: "disk I/O error")]))
        case 5: if trouble.ledgerTroubleEnds != nil { endLedgerTrouble() }
        case 6: worsenNotifications()
        case 7:
            machine.desktop.continueWork()
            machine.desktop.appear()
        case 8: try backUpOrRestore()
        case 9: misconfigure()
        case 10: repairConfiguration()
        case 11: changeServers()
        case 12: machine.removeApp(dice.chance(0.5))
        case 13: try tryANewerVersion()
        default: machine.setDiskFull(dice.chance(0.5))
        }
    }

    /// Installs a newer version, which changes the ledger. Later the current version and its ledger are installed again.
    private func tryANewerVersion() throws {
        try machine.useNewerVersion(true)
        try passThroughTrouble(dice.chance(0.5) ? dice.between(1, 600) : dice.between(600, 3 * 86_400))
        try machine.useNewerVersion(false)
    }

    // MARK: Clocks

    /// Sets the clock forward or back by days, weeks or a year, like a machine whose clock battery was empty.
    private func setClockWrong() throws {
        let days = dice.one(of: [1.0, 1, 3, 20, 365, 365, 400])
        let seconds = (dice.chance(0.6) ? days : -days) * 86_400 + dice.between(-3_000, 3_000).rounded()
        trouble.clockError += seconds
        try machine.stepClock(seconds)
    }

    private func setClockRight() throws {
        guard trouble.clockError != 0 else { return }
        let error = trouble.clockError
        trouble.clockError = 0
        try machine.stepClock(-error)
    }

    // MARK: Notifications

    private func worsenNotifications() {
        switch dice.number(0..<3) {
        case 0: machine.desktop.set(.isFrozen)
        case 1: machine.desktop.set(.refusesNext(dice.number(1..<6)))
        default: machine.desktop.vanish()
        }
    }

    // MARK: The ledger

    private func backUpOrRestore() throws {
        guard let backup = trouble.backup, dice.chance(0.5) else {
            machine.log("the ledger is backed up")
            trouble.backup = Trouble.Backup(ledger: try machine.ledger.backUp(), memory: app.memory)
            return
        }
        try machine.restore(backup.ledger)
        trouble.restorations += 1
        app.ledgerCameBack(backup.memory)
        // The list of broken invariants is kept. Values that were read from the ledger before the restore are discarded.
        watch = InvariantWatch(keeping: watch)
        // If the restored ledger does not contain the request, any command of the program submits the request again.
        if try machine.ledger.read({ try $0.request("noon") }) == nil { app.submit(noon()) }
    }

    // MARK: Mistakes

    private func misconfigure() {
        machine.log("a mistake in the configuration")
        app.isMisconfigured = true
    }

    private func repairConfiguration() {
        guard app.isMisconfigured else { return }
        machine.log("the configuration is right again")
        app.isMisconfigured = false
        machine.send(.filesChanged)
    }

    // MARK: Servers

    private func changeServers() {
        let (network, origin) = (machine.network, SimulatedServer.origin)
        switch dice.number(0..<4) {
        case 0: network.takeAway(origin)
        case 1: network.distrust(origin, true)
        default: restoreServers()
        }
    }

    private func restoreServers() {
        machine.network.comeBack(SimulatedServer.origin)
        machine.network.distrust(SimulatedServer.origin, false)
    }

    // MARK: The end

    /// Corrects all faults that occur only in the simulation of a month.
    func endAllFaults() throws {
        restoreServers()
        machine.removeApp(false)
        machine.setDiskFull(false)
        if trouble.ledgerTroubleEnds != nil { endLedgerTrouble() }
        machine.desktop.continueWork()
        repairConfiguration()
        try setClockRight()
    }

    /// Returns the invariants that are broken one day after the last fault. By this time, all promised work must have run or must
    /// have reported an error.
    func invariantsAfterOnePeriod() throws -> [String] {
        var broken: [String] = []
        let now = machine.clock.date
        let (requests, transfers) = try machine.ledger.read { (try $0.requests(), try $0.transfers()) }
        for request in requests where (request.earliestBegin ?? now) < now - 60 {
            broken.append("a period after the world was sane again \(request.identifier) is due and not launched")
        }
        for transfer in transfers where !transfer.state.isTerminal {
            let next = transfer.nextAttemptAt.map { $0.formatted(.iso8601) } ?? "none"
            broken.append(
                "a period after the world was sane again transfer \(transfer.id ?? 0) is \(transfer.state.rawValue), next attempt \(next): "
                    + (transfer.errorMessage ?? ""))
        }
        for identifier in app.memory.told where !machine.desktop.history.contains(where: { $0.identifier == identifier }) {
            broken.append("a period after the world was sane again \(identifier) was not shown")
        }
        return broken
    }
}

// Simulates the time before the command `why` has to list the reasons why a request does not run.
extension Simulation {
    /// Lets half a day to one and a half days pass. Random events prevent requests from running during these days.
    ///
    /// - Returns: The number of days.
    func liveToAQuestion() throws -> Double {
        let began = machine.clock.awake + machine.clock.slept
        var elapsed: Double { machine.clock.awake + machine.clock.slept - began }
        app.submit(noon())
        app.submit(fetch())
        app.submit(processing())
        let end = dice.between(43_200, 130_000)
        while elapsed < end {
            try happenToRequests()
            try machine.run()
            let pause = dice.chance(0.5) ? dice.between(0.1, 60) : dice.between(60, 12_000)
            try machine.pass(min(pause, max(0.1, end - elapsed)))
        }
        // In half of the simulations, `why` lists the reasons while an event is in progress.
        if dice.chance(0.5) {
            try happenToRequests()
            try machine.run()
            try machine.pass(dice.between(0, 40))
        }
        return elapsed / 86_400
    }

    private func fetch() -> RequestRecord {
        RequestRecord(
            identifier: "fetch", kind: .appRefresh, earliestBegin: machine.clock.date + dice.between(-60, 20_000),
            requiresNetwork: dice.chance(0.5), requiresExternalPower: dice.chance(0.2), runsInLowPowerMode: dice.chance(0.3),
            submittedAt: machine.clock.date)
    }

    private func happenToRequests() throws {
        switch dice.number(0..<14) {
        case 0, 1: app.submitOnce(after: dice.between(-60, 30_000))
        case 2: app.submit(processing())
        case 3: app.submit(fetch())
        case 4: machine.killAgent()
        case 5: machine.killAProcess(by: .signalled(9))
        case 6: machine.refuseLaunches(dice.chance(0.5))
        case 7: try machine.suspend(dice.between(5, 20_000))
        case 8: try machine.stepClock(dice.chance(0.5) ? dice.between(-20_000, 20_000) : dice.between(-30, 30))
        case 9: try travel()
        case 10...12: try changeConditions()
        default: try machine.stopAgent()
        }
    }
}
