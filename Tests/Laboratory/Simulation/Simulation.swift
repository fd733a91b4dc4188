import BackgroundAgent
import BackgroundLedger
import BackgroundScheduling
import BackgroundTasksTesting
import ServerScripts
import Foundation
import TransferMachines

/// One simulation of a virtual desktop, for three days or for a month with many faults. The random numbers of the seed decide all
/// events. After a calm period, the invariants are checked. The simulation uses the real agent, with its ledger and its state
/// machines.
package final class Simulation {
    package enum Length: Sendable {
        case days
        case month
    }

    /// The broken invariants of a run.
    package struct Failure: Error, CustomStringConvertible {
        package let seed: UInt64
        package let broken: [String]
        let transcript: [String]

        package var description: String {
            (["seed \(seed):"] + broken.map { "  BROKEN: " + $0 } + ["  the last of \(transcript.count) events:"]
                + transcript.suffix(60).map { "    " + $0 }).joined(separator: "\n")
        }
    }

    /// The numbers of events in a run. The numbers show whether enough events occurred.
    package struct Tally: Sendable {
        package var launches = 0
        package var agents = 0
        package var transfers = 0
        package var notices = 0
        package var moments = 0
        /// The number of times that an agent exited with unfinished work, and set a timer for its next start.
        package var absences = 0

        package static func + (one: Tally, other: Tally) -> Tally {
            Tally(
                launches: one.launches + other.launches, agents: one.agents + other.agents,
                transfers: one.transfers + other.transfers, notices: one.notices + other.notices,
                moments: one.moments + other.moments, absences: one.absences + other.absences)
        }

        package init(
            launches: Int = 0, agents: Int = 0, transfers: Int = 0, notices: Int = 0, moments: Int = 0, absences: Int = 0
        ) {
            (self.launches, self.agents, self.transfers, self.notices) = (launches, agents, transfers, notices)
            (self.moments, self.absences) = (moments, absences)
        }
    }

    let seed: UInt64
    let length: Length
    let dice: Dice
    let machine: SimulatedHost
    let app: SimulatedApp
    let server: SimulatedServer
    var watch = InvariantWatch()
    var trouble = Trouble()
    private let program: LateProgram
    private var photos = 0
    private var broken: [String] = []

    private static let zones = [
        "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia", "UTC", "America/Santiago",
    ]

    package init(seed: UInt64, _ length: Length = .days) throws {
        (self.seed, self.length) = (seed, length)
        dice = Dice(seed: seed)
        let dice = dice
        program = LateProgram()
        // The run begins in 2025. The year 2025 has two changes of daylight saving time.
        let start = Date(timeIntervalSince1970: 1_735_689_600 + dice.between(0, 360 * 86_400).rounded())
        machine = try SimulatedHost(
            start: start, zone: Self.zone(dice), program: program, random: { dice.unit })
        server = try SimulatedServer(machine.network, machine.directories.state, dice)
        // If a user manager exists, the agent exits whenever it is not needed.
        if dice.chance(0.5) { machine.userManager = VirtualUserManager() }
        app = SimulatedApp(machine, dice)
        app.digests = { [server] in server.digests($0) }
        program.app = app
        try watch.begin(machine)
    }

    private static func zone(_ dice: Dice) -> TimeZone { TimeZone(identifier: dice.one(of: zones)) ?? .gmt }

    /// - Throws: ``Failure``.
    package func run() throws -> Tally {
        do {
            app.submit(noon())
            switch length {
            case .days: for _ in 0..<dice.number(6..<24) { try happenAndPass() }
            case .month: try liveThroughAMonth()
            }
            try calmDown()
        } catch {
            throw Failure(seed: seed, broken: ["\(error)"] + app.memory.broken, transcript: machine.transcript)
        }
        let broken = try broken + app.memory.broken + watch.broken + invariantsInTheEnd()
        guard broken.isEmpty else { throw Failure(seed: seed, broken: broken, transcript: machine.transcript) }
        return try machine.ledger.read { transaction in
            Tally(
                launches: try transaction.history(limit: 1_000).count, agents: machine.agentsStarted,
                transfers: try transaction.transfers().count, notices: machine.desktop.history.count, moments: machine.moments,
                absences: machine.userManager?.timesArmed ?? 0)
        }
    }

    /// All notes that were recorded during the run.
    package var story: [String] { machine.transcript }

    func noon() -> RequestRecord {
        RequestRecord(
            identifier: "noon", kind: .appRefresh, earliestBegin: nil, recurrence: .daily(.noon),
            missed: dice.chance(0.8) ? .once : .skip, submittedAt: machine.clock.date)
    }

    func pass(_ seconds: Double) throws {
        try machine.pass(seconds) { [self] in
            try watch.look(machine)
            return !watch.broken.isEmpty
        }
    }

    // MARK: Events

    private func happenAndPass() throws {
        try happen()
        try machine.run()
        try pass(dice.chance(0.7) ? dice.between(0.1, 60) : dice.between(60, 12_000))
    }

    func happen() throws {
        switch dice.number(0..<21) {
        case 0: app.submitOnce(after: dice.between(-60, 30_000))
        case 1: app.submit(processing())
        case 2...4: app.download(dice.one(of: ["a", "b", "c", "d"]))
        case 5, 6: uploadPhoto()
        case 7:
            machine.log("a file changes on the server")
            server.change(dice.one(of: ["a", "b", "c", "d"]))
        case 8: server.addFault()
        case 9:
            machine.killAgent()
            try maybeLogIn()
        case 10:
            machine.killAgent()
            let moment = dice.one(of: [LedgerCommitStage.committing, .committed])
            try machine.startAgent(dyingAt: dice.number(1..<25), moment)
        case 11:
            // Either no process can be started for some time, or a process is killed.
            if dice.chance(0.3) { machine.refuseLaunches(dice.chance(0.6)) } else { machine.killAProcess(by: .signalled(9)) }
        case 12: try machine.suspend(dice.between(5, 30_000))
        case 13: try machine.stepClock(dice.chance(0.5) ? dice.between(-20_000, 20_000) : dice.between(-30, 30))
        case 14: try travel()
        case 15:
            if dice.chance(0.2) { machine.userManager?.refuse(dice.chance(0.5)) }
            try changeConditions()
        case 16: try changeNotificationServer()
        case 17: pressAButton()
        case 18: cancelSomething()
        case 19: troubleFiles()
        default:
            try machine.stopAgent()
            try maybeLogIn()
        }
    }

    func travel() throws { try machine.travel(to: Self.zone(dice)) }

    private func maybeLogIn() throws {
        if dice.chance(0.6) { try machine.startAgent() }
    }

    func processing() -> RequestRecord {
        RequestRecord(
            identifier: "sync", kind: .processing, earliestBegin: machine.clock.date + dice.between(0, 5_000),
            requiresNetwork: dice.chance(0.6), requiresExternalPower: dice.chance(0.4), submittedAt: machine.clock.date)
    }

    private func uploadPhoto() {
        photos += 1
        let size = dice.number(1..<300_000)
        let photo = Payload.pattern(40_000_000).slice(photos * 400_000..<photos * 400_000 + size).data
        let name = "photo-\(dice.number(0..<3)).jpg"
        let method = dice.one(of: [UploadKind.webdav, .tus, .resumable])
        if dice.chance(0.3) { app.want(photo, method, name: name) } else { app.upload(photo, method, name: name) }
    }

    func changeConditions() throws {
        let dice = dice
        try machine.change { conditions in
            switch dice.number(0..<4) {
            case 0, 1: conditions.isNetworkAvailable.toggle()
            case 2: conditions.isOnExternalPower.toggle()
            default: conditions.isLowPowerMode.toggle()
            }
        }
    }

    private func changeNotificationServer() throws {
        switch dice.number(0..<4) {
        case 0: machine.desktop.vanish()
        case 1: machine.desktop.set(.refuses)
        case 2: machine.desktop.answer(after: dice.between(0, 8))
        default: machine.desktop.appear()
        }
    }

    private func pressAButton() {
        let shown = machine.desktop.shown
        guard !shown.isEmpty else { return }
        let notice = dice.one(of: shown)
        if dice.chance(0.7) { machine.desktop.press(on: notice.identifier) } else { machine.desktop.dismiss(notice.identifier) }
    }

    /// Makes file operations of the spool fail for some time. All operations or one operation can fail, always or with a
    /// probability.
    private func troubleFiles() {
        let number = dice.one(of: [EMFILE, ENFILE, ENOMEM, EIO, EACCES])
        let calls = dice.chance(0.5) ? FileCalls.Call.allCases : [dice.one(of: FileCalls.Call.allCases)]
        let (probability, seconds) = (dice.one(of: [0.1, 0.5, 1]), dice.between(1, 6_000))
        let names = calls.map { "\($0)" }.joined(separator: ", ")
        machine.log("files fail for \(Int(seconds)) s with error \(number) (\(names); probability \(probability))")
        machine.failFiles(for: seconds) { [dice] call in
            calls.contains(call) && dice.chance(probability) ? number : nil
        }
    }

    private func cancelSomething() {
        let unfinished = app.write { try $0.unfinishedTransfers().filter { $0.session != "weather" } }
        if !unfinished.isEmpty, dice.chance(0.7) { return app.cancel(dice.one(of: unfinished).id!) }
        if dice.chance(0.2) { app.retract("once") }
    }

    // MARK: The end

    /// Ends all faults, and lets the time of the longest retry pass.
    func calmDown() throws {
        machine.log("calm")
        app.isCalm = true
        if length == .month { try endAllFaults() }
        server.becomeKind()
        machine.endFileFault()
        machine.refuseLaunches(false)
        machine.desktop.answer(after: 0)
        machine.desktop.appear()
        try machine.change { ($0.isNetworkAvailable, $0.isOnExternalPower, $0.isLowPowerMode) = (true, true, false) }
        // Another agent is started, because the old agent may be set to die at a commit.
        machine.killAgent()
        try machine.startAgent()
        try machine.run()
        watch.calmSince = machine.clock.date
        watch.latestBeforeCalm = try machine.ledger.read { try $0.latestLaunch() ?? 0 }
        if length == .month {
            try pass(86_400)
            // If an invariant is already broken, the run ends here.
            guard watch.broken.isEmpty else { return }
            broken += try invariantsAfterOnePeriod()
            try pass(1.5 * 86_400)
        } else {
            try pass(2.5 * 86_400)
        }
        // A launch that began in the last second also gets the time to end.
        if try machine.ledger.read({ try !$0.liveLaunches().isEmpty }) { try pass(60) }
    }
}

/// The app's program on the simulated host. The program passes each event to the simulated app, which is created after the host.
private final class LateProgram: VirtualProgram, @unchecked Sendable {  // because the simulation has one thread
    weak var app: SimulatedApp?
    func begin(_ process: VirtualProcess) { app?.begin(process) }
    func warned(_ process: VirtualProcess) { app?.warned(process) }
    func died(_ process: VirtualProcess) { app?.died(process) }
}
