import Foundation
import Testing

@testable import BackgroundTasks

@Suite struct TaskRequestTests {
    @Test func `a copy of a request has equal content and is independent`() throws {
        let request = BGProcessingTaskRequest(identifier: "a.process")
        request.requiresNetworkConnectivity = true
        request.requiresExternalPower = true
        request.earliestBeginDate = Date(timeIntervalSince1970: 1_000)
        request.recurrence = .daily(.noon)
        request.recurrenceDelay = 7
        request.missedOccurrences = .skip
        request.wakesSystem = true
        let copy = try #require(request.copy() as? BGProcessingTaskRequest)
        #expect(copy !== request)
        request.earliestBeginDate = nil
        request.requiresExternalPower = false
        #expect(copy.identifier == "a.process")
        #expect(copy.earliestBeginDate == Date(timeIntervalSince1970: 1_000))
        #expect(copy.requiresNetworkConnectivity && copy.requiresExternalPower)
        #expect(copy.recurrence == .daily(.noon))
        #expect(copy.recurrenceDelay == 7)
        #expect(copy.missedOccurrences == .skip)
        #expect(copy.wakesSystem)
        #expect(BGAppRefreshTaskRequest(identifier: "a").copy() is BGAppRefreshTaskRequest)
    }

    @Test func `error codes have the numbers of Apple`() {
        #expect(BGTaskScheduler.Error.Code.unavailable.rawValue == 1)
        #expect(BGTaskScheduler.Error.Code.tooManyPendingTaskRequests.rawValue == 2)
        #expect(BGTaskScheduler.Error.Code.notPermitted.rawValue == 3)
        #expect(BGTaskScheduler.Error.Code.immediateRunIneligible.rawValue == 4)
        let error = BGTaskScheduler.Error(.notPermitted) as NSError
        #expect(error.domain == BGTaskScheduler.errorDomain)
        #expect(error.code == 3)
    }
}

/// Tests that a handler may call the methods of its task in any order.
@Suite struct TaskTests {
    /// Records the results that the scheduler receives.
    private final class Results: @unchecked Sendable {  // because a test calls from one thread
        var all: [Bool] = []
    }

    private let results = Results()

    private func task() -> BGTask {
        let results = results
        return BGAppRefreshTask(identifier: "a") { results.all.append($0) }
    }

    @Test func `only the first completion of a task counts`() {
        let task = task()
        task.setTaskCompleted(success: false)
        task.setTaskCompleted(success: true)
        #expect(results.all == [false])
    }

    @Test func `an expired task without an expiration handler is unsuccessful`() {
        task().expire()
        #expect(results.all == [false])
    }

    @Test func `the expiration handler is called once and cleared`() {
        let task = task()
        var calls = 0
        task.expirationHandler = { calls += 1 }
        task.expire()
        task.expire()
        #expect(calls == 1)
        #expect(task.expirationHandler == nil)
    }

    @Test func `an expiration handler that is set after the expiration is called`() {
        let task = task()
        task.expirationHandler = {}
        task.expire()
        #expect(results.all.isEmpty, "the task may use its grace time")
        var wasCalled = false
        task.expirationHandler = { wasCalled = true }
        #expect(wasCalled)
    }

    @Test func `a completion clears the expiration handler`() {
        let task = task()
        task.expirationHandler = { Issue.record("expired after its end") }
        task.setTaskCompleted(success: true)
        #expect(task.expirationHandler == nil)
        task.expire()
        #expect(results.all == [true])
    }
}
