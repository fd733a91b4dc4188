import BackgroundAgent
@testable import BackgroundLedger
import BackgroundNotices
import BackgroundScheduling
import Foundation
import ProcessSupport
import Synchronization
import TransferMachines

/// Simulated processes that run until the test ends them.
final class FakeLauncher: Launcher {
    struct CannotStart: Error {}

    private(set) var started: [Int64] = []
    private(set) var warned: [Int64] = []
    private(set) var killed: [Int64] = []
    private(set) var forgotten: [Int64] = []
    private(set) var adopted: [Int64] = []
    /// The launches whose process is running. Several agents of a test share this set, because processes outlive an agent.
    var living: Set<Int64> = []
    /// The launches whose recorded process is in another PID namespace.
    var outOfReach: Set<Int64> = []
    var refuses = false
    private var nextPID: Int32 = 5_000_000

    func start(_ launch: Int64) throws -> ProcessIdentity {
        if refuses { throw CannotStart() }
        started.append(launch)
        living.insert(launch)
        nextPID += 1
        return ProcessIdentity(pid: nextPID, start: 1)
    }

    func adopt(_ launch: Int64, _ process: ProcessIdentity) -> Adoption {
        guard living.contains(launch) else { return .gone }
        guard !outOfReach.contains(launch) else { return .outOfReach }
        adopted.append(launch)
        return .watched
    }

    func isAlive(_ launch: Int64) -> Bool { living.contains(launch) }
    func warn(_ launch: Int64) { warned.append(launch) }
    func kill(_ launch: Int64) { killed.append(launch) }
    func forget(_ launch: Int64) { forgotten.append(launch) }
}

/// A transport that records attempts. The test delivers all bytes and results.
final class FakeTransport: Transport {
    struct Attempt: Sendable {
        var id: AttemptID
        var request: WireRequest
        var source: (any BodySource)?
        var sink: any BodySink

        /// Reads the rest of the body.
        ///
        /// - Returns: The number of bytes.
        func drainBody() -> Int64 {
            var buffer = [UInt8](repeating: 0, count: 16)
            var taken: Int64 = 0
            while let count = buffer.withUnsafeMutableBytes({ source?.read(into: $0) }), count > 0 { taken += Int64(count) }
            return taken
        }
    }

    private let attempts = Mutex<[Attempt]>([])
    private let cancellations = Mutex<[AttemptID]>([])

    var started: [Attempt] { attempts.withLock { $0 } }
    var cancelled: [AttemptID] { cancellations.withLock { $0 } }

    func start(_ attempt: AttemptID, _ request: WireRequest, source: (any BodySource)?, sink: any BodySink) {
        attempts.withLock { $0.append(Attempt(id: attempt, request: request, source: source, sink: sink)) }
    }

    func cancel(_ attempt: AttemptID) { cancellations.withLock { $0.append(attempt) } }
}

final class FakePresenter: Presenter {
    struct Showing: Sendable, Equatable {
        var notice: Notice
        var replacing: UInt32?
        var server: String?
    }

    private let showings = Mutex<[Showing]>([])
    private let withdrawals = Mutex<[String]>([])

    var shown: [Showing] { showings.withLock { $0 } }
    var withdrawn: [String] { withdrawals.withLock { $0 } }

    func present(_ notice: Notice, replacing serverID: UInt32?, of server: String?) {
        showings.withLock { $0.append(Showing(notice: notice, replacing: serverID, server: server)) }
    }

    private let questions = Mutex<Int>(0)
    /// The number of times that the agent checked whether the server responds.
    var asked: Int { questions.withLock { $0 } }

    private let adoptions = Mutex<[String]>([])
    var adoptedNotifications: [String] { adoptions.withLock { $0 } }

    func adoptNotification(identifier: String, serverID: UInt32, of server: String?) {
        adoptions.withLock { $0.append("\(identifier) \(serverID)") }
    }

    private let badges = Mutex<[Int]>([])
    var badge: [Int] { badges.withLock { $0 } }

    func showBadge(_ count: Int, desktopEntry: String) { badges.withLock { $0.append(count) } }

    func query() { questions.withLock { $0 += 1 } }

    func withdraw(identifier: String, serverID: UInt32, of server: String?) {
        withdrawals.withLock { $0.append("\(identifier) \(serverID)") }
    }
}

final class FakeConditions: ConditionsSource {
    private let value = Mutex(DesktopConditions(isNetworkAvailable: true, isNetworkMetered: false, isOnExternalPower: true))

    private let onRead = Mutex<(@Sendable () -> Void)?>(nil)

    var current: DesktopConditions {
        onRead.withLock { $0 }?()
        return value.withLock { $0 }
    }

    /// Sets an action that runs each time the agent reads the conditions. The agent reads the conditions once in each pass,
    /// before it reads the ledger.
    func onEachRead(_ action: (@Sendable () -> Void)?) { onRead.withLock { $0 = action } }

    func set(_ change: (inout DesktopConditions) -> Void) { value.withLock { change(&$0) } }
}

/// The clocks of a host, set by the test.
final class Clocks: Sendable {
    struct Value: Sendable {
        var now: Date
        var awake: Double = 1_000
        var slept: Double = 0
        var zone: TimeZone
    }

    private let state: Mutex<Value>

    init(now: Date, zone: TimeZone) { state = Mutex(Value(now: now, zone: zone)) }

    var value: Value { state.withLock { $0 } }

    func change(_ change: (inout Value) -> Void) { state.withLock { change(&$0) } }
}

/// The events that the disk worker posts to the agent.
final class PostedEvents: @unchecked Sendable {  // because the condition's lock guards it
    private let condition = NSCondition()
    private var events: [AgentEvent] = []

    func add(_ event: AgentEvent) {
        condition.lock()
        events.append(event)
        condition.broadcast()
        condition.unlock()
    }

    var hasAny: Bool {
        condition.lock()
        defer { condition.unlock() }
        return !events.isEmpty
    }

    /// Removes and returns the next event; `nil` if no event is available.
    func take() -> AgentEvent? {
        condition.lock()
        defer { condition.unlock() }
        return events.isEmpty ? nil : events.removeFirst()
    }

    /// Waits for the next event, removes and returns it; `nil` after 20 s.
    func next() -> AgentEvent? {
        condition.lock()
        defer { condition.unlock() }
        let deadline = Date(timeIntervalSinceNow: 20)
        while events.isEmpty { if !condition.wait(until: deadline) { return nil } }
        return events.removeFirst()
    }
}
