import BackgroundAgent
import BackgroundLedger
import BackgroundScheduling
import BackgroundTasks
import Foundation

// Events that a test causes: the stop of a launch, the sleep of the machine, the death of the agent.
extension TestDriver {
    // MARK: Folders

    /// Examines the folders that pending requests wait for (`BGTaskRequest.watchedFolders`), as the agent does after a change in
    /// a folder. If the content of a folder changed, the agent launches the request.
    ///
    /// - Throws: an error if events cause each other without end, so that virtual time cannot pass.
    public func examineFolders() async throws {
        try await settle()
        for folder in machine.agent?.watchedFolders ?? [] {
            machine.send(.folderExamined(folder, FolderSignature.compute(folder)))
        }
        try await settle()
    }

    // MARK: Launches

    /// Launches a pending request now, as the agent would launch it later. The history marks the launch as simulated.
    ///
    /// - Throws: ``Refused`` with the response of the agent.
    @discardableResult
    public func simulateLaunch(_ identifier: String) async throws -> LaunchReport {
        let last = ledger.history.last?.id ?? 0
        try await send(.simulateLaunch, identifier)
        saw(last + 1)
        return try report(of: last + 1)
    }

    /// Ends the time of a running launch, and lets virtual time pass until the launch has ended.
    ///
    /// - Parameters:
    ///   - identifier: The identifier of the launch; `nil` for the launch that is running.
    ///   - delay: The virtual time that passes before the time limit of the launch is reached.
    /// - Throws: ``Refused`` if no such launch is running; an error if events cause each other without end, so that virtual time
    ///   cannot   pass.
    @discardableResult
    public func simulateExpiration(of identifier: String? = nil, after delay: Duration = .zero) async throws -> LaunchReport {
        try await advance(by: delay)
        let launch = try running(identifier)
        try await send(.simulateExpire, launch.identifier)
        return try await finish(launch)
    }

    /// Stops a running launch for a reason. The driver simulates the cause, and lets virtual time pass until the launch has
    /// ended.
    ///
    /// - `.expired`: the launch reaches its time limit.
    /// - `.simulated`: the command `simulate expire` ends the launch.
    /// - `.quit`: the agent is stopped.
    /// - `.conditionLost`: network and external power are lost until ``setConditions(_:)`` restores them. Only launches that
    ///   require a network or external power are stopped.
    /// - `.cancelled`: the user presses Cancel.
    /// - `.noProgress`: the launch makes no progress for too long.
    ///
    /// - Throws: ``Refused`` if the launch ended in another way.
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
            let how = ended.stopReason.map { "was stopped for the reason \($0.rawValue)" } ?? "was not stopped"
            throw Refused(
                answer:
                    "\(launch.identifier) \(how); it ended as \(ended.outcome?.rawValue ?? "nothing"), "
                    + "not for the reason \(reason.rawValue)")
        }
        return ended
    }

    /// Kills the process of a running launch, as by SIGKILL.
    ///
    /// - Throws: ``Refused`` if no launch is running, or if the launch is continued processing, which runs in the process of the test.
    @discardableResult
    public func killApp(of identifier: String? = nil) async throws -> LaunchReport {
        try await settle()
        let launch = try running(identifier)
        guard machine.processes.process(of: launch.id) != nil else {
            throw Refused(
                answer: "\(launch.identifier) runs in the process that requested the work. In a test, this process is the test")
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

    /// The error for an action that the agent or the driver refused.
    public struct Refused: Error, CustomStringConvertible {
        /// The reason in words.
        public let answer: String
        /// The reason in words, equal to ``answer``.
        public var description: String { answer }
    }

    private func send(_ verb: ControlRecord.Verb, _ argument: String) async throws {
        let id = try machine.ledger.write { try $0.addControl(verb, argument, now: clock.date) }
        try await settle()
        guard let answer = ledger.read({ try $0.answer(to: id) }) else { throw Refused(answer: "no agent responds") }
        if answer.hasPrefix("error: ") { throw Refused(answer: String(answer.dropFirst(7))) }
    }

    // MARK: The agent

    /// Kills the agent with SIGKILL. There are no launches, transfers or notifications until another agent starts. Another agent
    /// starts at the next commit of the app, or by ``startAgent()``.
    public func killAgent() { machine.killAgent() }

    /// Starts an agent, like the next login.
    ///
    /// - Throws: an error if events cause each other without end, so that virtual time cannot pass.
    public func startAgent() async throws {
        try machine.startAgent()
        try await settle()
    }

    // MARK: The host

    /// The network and power conditions of a desktop.
    public struct Conditions: Sendable {
        /// `true` if a network is available.
        public var isNetworkAvailable = true
        /// `true` if the network is metered.
        public var isNetworkMetered = false
        /// `true` if the machine has external power or has no battery.
        public var isOnExternalPower = true
        /// `true` if the desktop is in power saver mode.
        public var isLowPowerMode = false
    }

    /// Changes the conditions of the desktop. Without a network no server can be reached, and connections break.
    ///
    /// - Throws: an error if events cause each other without end, so that virtual time cannot pass.
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

    /// Lets the host sleep. The wall clock of the host continues, but no code runs, and connections break.
    ///
    /// - Throws: an error if events cause each other without end, so that virtual time cannot pass.
    public func suspend(for duration: Duration) async throws {
        try await settle()
        try machine.suspend(duration / .seconds(1))
        try await settle()
    }

    /// Changes the wall clock, forward or back.
    ///
    /// - Throws: an error if events cause each other without end, so that virtual time cannot pass.
    public func stepClock(by duration: Duration) async throws {
        try await settle()
        try machine.stepClock(duration / .seconds(1))
        try await settle()
    }

    /// Changes the time zone, as if the user travels.
    ///
    /// - Throws: an error if events cause each other without end, so that virtual time cannot pass.
    public func travel(to zone: TimeZone) async throws {
        try await settle()
        try machine.travel(to: zone)
        try await settle()
    }

    /// Sets the maximum real time that the driver waits for a handler that does not wait for virtual time.
    public func setPatience(_ patience: Duration) { self.patience = patience }

    /// The log of the agent, line by line, for the message of a failed test.
    public var transcript: [String] { machine.transcript }
}
