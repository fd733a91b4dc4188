// Mocks that are typical of the tests of real apps. The mocks are subclasses, because the classes of Apple are open. The tests
// check that the mocks compile and are called.
import BackgroundTasks
import BackgroundTransfer
import Foundation
import Testing

private final class MockScheduler: BGTaskScheduler, @unchecked Sendable {  // because a test calls from one thread
    private(set) var submitted: [BGTaskRequest] = []
    private(set) var registered: [String: (BGTask) -> Void] = [:]
    private(set) var cancelled: [String] = []

    override func register(
        forTaskWithIdentifier identifier: String, using queue: DispatchQueue?, launchHandler: @escaping (BGTask) -> Void
    ) -> Bool {
        registered[identifier] = launchHandler
        return true
    }

    override func submit(_ taskRequest: BGTaskRequest) throws {
        if taskRequest.identifier == "refused" { throw BGTaskScheduler.Error(.notPermitted) }
        submitted.append(taskRequest)
    }

    override func submitTaskRequest(_ taskRequest: BGTaskRequest) async throws { try submit(taskRequest) }

    override func cancel(taskRequestWithIdentifier identifier: String) { cancelled.append(identifier) }
    override func cancelAllTaskRequests() { submitted = [] }
    override func pendingTaskRequests() async -> [BGTaskRequest] { submitted }

    override func getPendingTaskRequests(completionHandler: @escaping @Sendable ([BGTaskRequest]) -> Void) {
        completionHandler(submitted)
    }
}

private final class MockRefreshTask: BGAppRefreshTask, @unchecked Sendable {  // because a test calls from one thread
    private(set) var results: [Bool] = []

    override func setTaskCompleted(success: Bool) { results.append(success) }
}

private final class MockProcessingTask: BGProcessingTask, @unchecked Sendable {  // because a test calls from one thread
    var expiration: (() -> Void)?

    override var expirationHandler: (() -> Void)? {
        get { expiration }
        set { expiration = newValue }
    }
}

private final class MockContinuedTask: BGContinuedProcessingTask, @unchecked Sendable {  // because a test calls from one thread
    private(set) var titles: [String] = []

    override func updateTitle(_ title: String, subtitle: String) { titles.append(title) }
}

private final class MockResearchTask: BGHealthResearchTask, @unchecked Sendable {}  // because its base class is

private final class MarkedRequest: BGAppRefreshTaskRequest, @unchecked Sendable {  // because a test calls from one thread
    override var earliestBeginDate: Date? {
        get { super.earliestBeginDate }
        set { super.earliestBeginDate = newValue?.addingTimeInterval(1) }
    }
}

private final class MarkedProcessing: BGProcessingTaskRequest, @unchecked Sendable {}  // because its base class is
private final class MarkedContinued: BGContinuedProcessingTaskRequest, @unchecked Sendable {}  // because its base is

@Suite struct MockShapeTests {
    @Test func `a mock of the scheduler receives every call`() async throws {
        let mock = MockScheduler()
        let scheduler: BGTaskScheduler = mock
        #expect(scheduler.register(forTaskWithIdentifier: "a", using: nil) { $0.setTaskCompleted(success: true) })
        let request = MarkedRequest(identifier: "a")
        request.earliestBeginDate = Date(timeIntervalSince1970: 1)
        try scheduler.submit(request)
        try await scheduler.submitTaskRequest(MarkedProcessing(identifier: "b"))
        #expect(throws: BGTaskScheduler.Error(.notPermitted)) { try scheduler.submit(MarkedRequest(identifier: "refused")) }
        #expect(await scheduler.pendingTaskRequests().map(\.identifier) == ["a", "b"])
        #expect(mock.submitted.first?.earliestBeginDate == Date(timeIntervalSince1970: 2))
        scheduler.cancel(taskRequestWithIdentifier: "a")
        scheduler.cancelAllTaskRequests()
        #expect(mock.cancelled == ["a"] && mock.submitted.isEmpty)
        let task = MockRefreshTask(identifier: "a")
        mock.registered["a"]?(task)
        #expect(task.results == [true])
        #expect(MarkedContinued(identifier: "c.1", title: "T", subtitle: "S").title == "T")
    }

    @Test func `methods that mocks of tasks override are called`() {
        let processing: BGTask = MockProcessingTask(identifier: "b")
        processing.expirationHandler = { processing.setTaskCompleted(success: false) }
        #expect((processing as? MockProcessingTask)?.expiration != nil)
        (processing as? MockProcessingTask)?.expiration?()
        let continued = MockContinuedTask(identifier: "c.1")
        continued.progress.totalUnitCount = 2
        continued.updateTitle("half", subtitle: "")
        continued.setTaskCompleted(success: true)
        #expect(continued.titles == ["half"] && continued.title.isEmpty)
        #expect(MockResearchTask(identifier: "d").identifier == "d")
    }

    @Test func `the shared scheduler of a subclass is the real scheduler`() {
        #expect(type(of: MockScheduler.shared) == BGTaskScheduler.self)
    }
}

/// Mocks that tests of networking layers have used since 2015.
private final class MockDataTask: URLSessionDataTask, @unchecked Sendable {
    private let onResume: () -> Void

    init(onResume: @escaping () -> Void) {
        self.onResume = onResume
        super.init()
    }

    override func resume() { onResume() }
    override func cancel() {}
}

private final class MockSession: URLSession, @unchecked Sendable {
    var answer: (Data?, URLResponse?, (any Error)?) = (nil, nil, nil)
    private(set) var asked: [URL] = []

    override init() { super.init() }

    override func dataTask(
        with request: URLRequest, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDataTask {
        if let url = request.url { asked.append(url) }
        let answer = answer
        return MockDataTask { completionHandler(answer.0, answer.1, answer.2) }
    }
}

@Suite struct MockSessionTests {
    @Test func `a mock of a session responds instead of the session`() throws {
        let session = MockSession()
        session.answer = (Data("mocked".utf8), nil, nil)
        let url = try #require(URL(string: "https://example.org/"))
        nonisolated(unsafe) var heard: Data?
        session.dataTask(with: URLRequest(url: url)) { data, _, _ in heard = data }.resume()
        #expect(heard == Data("mocked".utf8) && session.asked == [url])
    }
}
