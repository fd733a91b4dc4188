import BackgroundLedger
import BackgroundScheduling
import BackgroundTasks
import Foundation

// What happens to a driven app: its launches are cut short, its machine sleeps, its agent dies.
extension TestDriver {
    // MARK: Launches

    /// Launches a pending request now, as the system would; marked as simulated in the history.
    ///
    /// - Throws: ``Refused`` with the agent's answer.
    @discardableResult
    public func simulateLaunch(_ identifier: String) async throws -> LaunchReport {
        let last = ledger.history.last?.id ?? 0
        try await ask(.simulateLaunch, identifier)
        saw(last + 1)
        return try report(of: last + 1)
    }

    /// Ends the time of a running launch, and lets time pass until it has ended.
    ///
    /// - Parameters:
    ///   - identifier: whose; `nil`: of the one that runs.
    ///   - delay: virtual time until then.
    /// - Throws: ``NothingIsLaunched``; when one moment leads to the next without end, so that virtual time stands still.
    @discardableResult
    public func simulateExpiration(of identifier: String? = nil, after delay: Duration = .zero) async throws -> LaunchReport {
        try await advance(by: delay)
        let launch = try running(identifier)
        try await ask(.simulateExpire, launch.identifier)
        return try await finish(launch)
    }

    /// Has a running launch stopped for a reason, by bringing that reason about, and lets time pass until it has ended.
    ///
    /// - `.expired`: its budget runs out. `.simulated`: its time is ended by hand. `.quit`: the agent is told to stop.
    /// - `.conditionLost`: network and external power go, until ``setConditions(_:)`` brings them back; only launches that require one
    ///   of them are stopped by that. `.cancelled`: the person presses Cancel.
    /// - `.noProgress`: its progress stands still for too long.
    ///
    /// - Throws: ``Refused`` if it ended in another way.
    @discardableResult
    public func stop(reason: StopReason, of identifier: String? = nil) async throws -> LaunchReport {
        try await settle()
        let launch = try running(identifier)
        switch reason {
        case .simulated: return try await simulateExpiration(of: launch.identifier)
        case .expired, .noProgress: break
        case .quit:
            try machine.stopAgent()
        case .conditionLost:
            try machine.change { ($0.isNetworkAvailable, $0.isOnExternalPower) = (false, false) }
        case .cancelled:
            guard notifications.press("cancel", on: "continued-processing-\(launch.id)") else {
                throw Refused(answer: "no progress notification of \(launch.identifier) is on the screen")
            }
        }
        let ended = try await finish(launch)
        guard ended.stopReason == reason else {
            let how = ended.stopReason.map { "was stopped, but as \($0.rawValue)" } ?? "was not stopped"
            throw Refused(
                answer:
                    "\(launch.identifier) \(how); it ended as \(ended.outcome?.rawValue ?? "nothing"), not by \(reason.rawValue)")
        }
        return ended
    }

    /// The process of a running launch dies, as by SIGKILL.
    ///
    /// - Throws: ``Refused`` if none runs, or it is continued processing, whose process is the test's own.
    @discardableResult
    public func killApp(of identifier: String? = nil) async throws -> LaunchReport {
        try await settle()
        let launch = try running(identifier)
        guard machine.processes.process(of: launch.id) != nil else {
            throw Refused(answer: "\(launch.identifier) runs in the process that asked for it, which here is the test's own")
        }
        machine.processes.kill(launch.id, by: .signalled(SIGKILL))
        return try await finish(launch, within: .seconds(1))
    }

    private func running(_ identifier: String?) throws -> LaunchReport {
        let running = ledger.running.filter { identifier == nil || $0.identifier == identifier }
        guard let launch = running.last else {
            throw Refused(answer: "no launch\(identifier.map { " of \($0)" } ?? "") is running")
        }
        return launch
    }

    /// The agent, or the driver, says no.
    public struct Refused: Error, CustomStringConvertible {
        /// In words.
        public let answer: String
        /// The answer.
        public var description: String { answer }
    }

    private func ask(_ verb: ControlRecord.Verb, _ argument: String) async throws {
        let id = try machine.ledger.write { try $0.ask(verb, argument, now: clock.date) }
        try await settle()
        guard let answer = ledger.read({ try $0.answer(to: id) }) else { throw Refused(answer: "no agent answers") }
        if answer.hasPrefix("error: ") { throw Refused(answer: String(answer.dropFirst(7))) }
    }

    // MARK: The agent

    /// SIGKILL of the agent. Nothing is launched, moved or shown until another is there: at the next commit of the app, or by
    /// ``startAgent()``.
    public func killAgent() { machine.killAgent() }

    /// As the next login brings one.
    /// - Throws: when one moment leads to the next without end, so that virtual time stands still.
    public func startAgent() async throws {
        try machine.startAgent()
        try await settle()
    }

    // MARK: The host

    /// What a desktop says of network and power.
    public struct Conditions: Sendable {
        /// Some network can be tried.
        public var isNetworkAvailable = true
        /// It costs money per byte.
        public var isNetworkMetered = false
        /// On mains, or without a battery.
        public var isOnExternalPower = true
        /// The person spares the battery.
        public var isLowPowerMode = false
    }

    /// Changes what the desktop says. Without a network no server is reached either, and connections break.
    /// - Throws: when one moment leads to the next without end, so that virtual time stands still.
    public func setConditions(_ change: @Sendable (inout Conditions) -> Void) async throws {
        try machine.change { desktop in
            var conditions = Conditions()
            conditions.isNetworkAvailable = desktop.isNetworkAvailable
            conditions.isNetworkMetered = desktop.isNetworkMetered
            conditions.isOnExternalPower = desktop.isOnExternalPower
            conditions.isLowPowerMode = desktop.isLowPowerMode
            change(&conditions)
            desktop.isNetworkAvailable = conditions.isNetworkAvailable
            desktop.isNetworkMetered = conditions.isNetworkMetered
            desktop.isOnExternalPower = conditions.isOnExternalPower
            desktop.isLowPowerMode = conditions.isLowPowerMode
        }
        try await settle()
    }

    /// The host sleeps: its wall clock goes on and nothing else does; connections break.
    /// - Throws: when one moment leads to the next without end, so that virtual time stands still.
    public func suspend(for duration: Duration) async throws {
        try await settle()
        try machine.suspend(duration / .seconds(1))
        try await settle()
    }

    /// Somebody sets the wall clock, forward or back.
    /// - Throws: when one moment leads to the next without end, so that virtual time stands still.
    public func stepClock(by duration: Duration) async throws {
        try await settle()
        try machine.stepClock(duration / .seconds(1))
        try await settle()
    }

    /// The person travels.
    /// - Throws: when one moment leads to the next without end, so that virtual time stands still.
    public func travel(to zone: TimeZone) async throws {
        try await settle()
        try machine.travel(to: zone)
        try await settle()
    }

    /// How long handlers that wait for nothing virtual are waited for, in real time.
    public func setPatience(_ patience: Duration) { self.patience = patience }

    /// What the agent did, line by line: for a failure's message.
    public var transcript: [String] { machine.transcript }
}
