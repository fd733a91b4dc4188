import ProcessSupport
import BackgroundScheduling
import Foundation
import GRDB

/// A pending request: work for which the app will be launched. Only events change the columns that store the request's
/// ``life(_:)``.
package struct RequestRecord: Codable, Sendable, Equatable {
    package let identifier: String
    package private(set) var token: String
    package let kind: LaunchKind
    package private(set) var earliestBegin: Date?
    package let recurrence: WallClockRule?
    package private(set) var occurrence: Date?
    package let spread: Double
    package let missed: MissedPolicy
    package let requiresNetwork: Bool
    package let requiresExternalPower: Bool
    package let runsInLowPowerMode: Bool
    /// `true` if the machine should be woken from sleep for the request.
    package let wakesSystem: Bool
    package let submittedAt: Date
    package private(set) var failures: Int
    package private(set) var backoffUntil: Date?
    package private(set) var lastFailureAt: Date?
    package private(set) var beginAfterRetry: Date?
    // Only requests of continued processing have the following values. The values are the text of the progress notification, the
    // process that will do the work, and the strategy and the resources as Apple's numbers.
    package let title: String?
    package let subtitle: String?
    private let hostPID: Int32?
    private let hostStart: Int64?
    package let strategy: Int?
    /// The number of the launch in which a handler submitted the request, or `nil` if a process that a user started submitted the
    /// request.
    package fileprivate(set) var submittedInLaunch: Int64?
    package let resources: Int?

    /// The process that runs the handler of continued processing, or `nil` for other kinds of requests.
    package var host: ProcessIdentity? {
        guard let hostPID, let hostStart else { return nil }
        return ProcessIdentity(pid: hostPID, start: hostStart)
    }

    package init(
        identifier: String, kind: LaunchKind, earliestBegin: Date? = nil, recurrence: WallClockRule? = nil, spread: Double = 0,
        missed: MissedPolicy = .once, requiresNetwork: Bool = false, requiresExternalPower: Bool = false,
        runsInLowPowerMode: Bool = false, wakesSystem: Bool = false, title: String? = nil, subtitle: String? = nil,
        host: ProcessIdentity? = nil, strategy: Int? = nil, resources: Int? = nil, submittedAt: Date
    ) {
        (self.identifier, token, self.kind, self.submittedAt) = (identifier, UUID.random().uuidString, kind, submittedAt)
        (self.earliestBegin, self.recurrence, self.spread, self.missed) = (earliestBegin, recurrence, spread, missed)
        (self.requiresNetwork, self.requiresExternalPower) = (requiresNetwork, requiresExternalPower)
        (self.runsInLowPowerMode, self.wakesSystem, failures) = (runsInLowPowerMode, wakesSystem, 0)
        (self.title, self.subtitle, hostPID, hostStart) = (title, subtitle, host?.pid, host?.start)
        (self.strategy, self.resources) = (strategy, resources)
    }
}

extension RequestRecord: LedgerRecord {
    package static let databaseTableName = "request"
}

// The columns that store the state of a request (`RequestLife`). `ClockMistakes.swift` is the only other file that writes these
// columns, because it corrects many rows in one statement.
extension RequestRecord {
    /// - Parameter phase: the phase of the request, computed from the rows of the launches.
    package func life(_ phase: RequestLife.Phase) -> RequestLife {
        RequestLife(
            terms: RequestLife.Terms(
                kind: kind,
                needs: RequestNeeds(
                    of: kind, network: requiresNetwork, externalPower: requiresExternalPower,
                    runsInLowPowerMode: runsInLowPowerMode),
                recurrence: recurrence, spread: spread, missed: missed),
            submittedAt: submittedAt, phase: phase, token: token, earliestBegin: earliestBegin, occurrence: occurrence,
            delay: backoffUntil.map { RequestLife.Delay(until: $0, reason: failures > 0 ? .failures : .discretion) },
            failures: failures, lastFailureAt: lastFailureAt, beginAfterRetry: beginAfterRetry)
    }

    fileprivate mutating func handle(
        _ event: RequestLife.Event, _ phase: RequestLife.Phase, now: Date, in zone: TimeZone
    ) -> [RequestLife.Command] {
        var life = life(phase)
        let commands = life.handle(event, now: now, in: zone)
        (token, earliestBegin, occurrence) = (life.token, life.earliestBegin, life.occurrence)
        (failures, backoffUntil) = (life.failures, life.delay?.until)
        (lastFailureAt, beginAfterRetry) = (life.lastFailureAt, life.beginAfterRetry)
        return commands
    }
}

extension LedgerTransaction {
    /// Adds a request, or replaces the request that has the same identifier.
    ///
    /// - Parameter launch: the number of the launch whose handler submits the request. `nil` if a process that a user started
    ///   submits the request.
    /// - Returns: the pending request.
    @discardableResult
    package func submit(_ request: RequestRecord, in launch: Int64? = nil, now: Date, zone: TimeZone) throws -> RequestRecord {
        var request = request
        request.submittedInLaunch = launch
        let own = try launch.flatMap { try self.launch($0) }
        let hasRule = request.recurrence != nil
        let event = RequestLife.Event.submitted(
            replacing: hasRule ? try self.request(request.identifier)?.life(.pending) : nil,
            served: own?.identifier == request.identifier ? own?.servedOccurrence : nil,
            lastServed: hasRule ? try lastServedOccurrence(request.identifier, now: now) : nil,
            // A request that a simulated launch submits has no pause.
            pause: own?.simulated == false ? try pauseOfDiscretion(request, now: now) : 0)
        let commands = request.handle(event, hasRule ? try phase(of: request) : .pending, now: now, in: zone)
        try save(request)
        try carryOut(commands, request, in: zone)
        return request
    }

    /// Applies an event to a request. The row is saved or deleted.
    ///
    /// - Parameter phase: the phase of the request, or `nil` to compute the phase from the running launches.
    /// - Returns: the actions that the agent must perform.
    @discardableResult
    package func handle(
        _ event: RequestLife.Event, _ request: inout RequestRecord, _ phase: RequestLife.Phase? = nil, now: Date,
        in zone: TimeZone
    ) throws -> [RequestLife.Command] {
        let before = request
        let commands = request.handle(event, try phase ?? self.phase(of: request), now: now, in: zone)
        // An unchanged row is not written, because a write sends a change notification.
        if request != before, !commands.contains(.remove) { try save(request) }
        try carryOut(commands, request, in: zone)
        return commands
    }

    private func carryOut(_ commands: [RequestLife.Command], _ request: RequestRecord, in zone: TimeZone) throws {
        for command in commands {
            switch command {
            case .planned: try setFact(.zone(ofRequest: request.identifier), zone.identifier)
            case .remove: try deleteRequest(request.identifier)
            case .begin, .skip: break
            }
        }
    }

    /// Returns the phase of a request. If the request was submitted again after its launch began, the new request has the phase
    /// of this launch.
    package func phase(of request: RequestRecord) throws -> RequestLife.Phase {
        let launch = try liveLaunches().first { $0.identifier == request.identifier && $0.requestToken != nil }
        return launch.map { .serving(generation: $0.generation) } ?? .pending
    }
}
