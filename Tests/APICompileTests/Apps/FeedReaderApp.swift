// A feed reader that is written like Apple's sample app of 2019. A refresh loads the feed with chained operations, and the
// database is cleaned at night. The code was written for iOS, and only its imports were changed.
import BackgroundTasks
import BackgroundTransfer

struct FeedEntry: Codable, Hashable, Sendable {
    let id: Int
    let title: String
    let timestamp: Date
}

/// A replacement for Core Data.
final class FeedStore: @unchecked Sendable {
    private let lock = NSLock()
    private var entries: [Int: FeedEntry] = [:]

    var all: [FeedEntry] { lock.withLock { entries.values.sorted { $0.id < $1.id } } }

    func insert(_ new: [FeedEntry]) { lock.withLock { for entry in new { entries[entry.id] = entry } } }

    func deleteEntries(before date: Date) { lock.withLock { entries = entries.filter { $0.value.timestamp >= date } } }
}

/// An operation that continues after `start()` has returned.
final class DownloadEntriesOperation: Operation, @unchecked Sendable {
    enum OperationError: Error { case cancelled, badResponse }

    var result: Result<[FeedEntry], Error>?

    private let url: URL
    private var isDownloading = false
    private var hasFinished = false
    private var currentDownloadTask: URLSessionDataTask?

    init(url: URL) { self.url = url }

    override var isAsynchronous: Bool { true }
    override var isExecuting: Bool { isDownloading }
    override var isFinished: Bool { hasFinished }

    override func cancel() {
        super.cancel()
        currentDownloadTask?.cancel()
    }

    override func start() {
        willChangeValue(forKey: "isExecuting")
        isDownloading = true
        didChangeValue(forKey: "isExecuting")

        guard !isCancelled else { return finish(result: .failure(OperationError.cancelled)) }

        currentDownloadTask = URLSession.shared.dataTask(with: url) { [weak self] data, response, error in
            if let error { self?.finish(result: .failure(error)); return }
            guard let data, let httpResponse = response as? HTTPURLResponse, 200..<300 ~= httpResponse.statusCode else {
                self?.finish(result: .failure(OperationError.badResponse))
                return
            }
            let decoder = JSONDecoder()
            decoder.dateDecodingStrategy = .iso8601
            self?.finish(result: Result { try decoder.decode([FeedEntry].self, from: data) })
        }
        currentDownloadTask?.resume()
    }

    func finish(result: Result<[FeedEntry], Error>) {
        guard isDownloading else { return }

        willChangeValue(forKey: "isExecuting")
        willChangeValue(forKey: "isFinished")
        isDownloading = false
        hasFinished = true
        self.result = result
        currentDownloadTask = nil
        didChangeValue(forKey: "isFinished")
        didChangeValue(forKey: "isExecuting")
    }
}

final class FeedAppDelegate: NSObject, @unchecked Sendable {
    static let refreshIdentifier = "com.example.feed.refresh"
    static let cleanIdentifier = "com.example.feed.db_cleaning"

    let store: FeedStore
    let serverURL: URL
    private(set) var lastCleaned: Date?

    init(store: FeedStore = FeedStore(), serverURL: URL) {
        self.store = store
        self.serverURL = serverURL
        super.init()
    }

    #if false  // lacks: UIApplicationDelegate
        func application(
            _ application: UIApplication, didFinishLaunchingWithOptions options: [UIApplication.LaunchOptionsKey: Any]?
        ) -> Bool {
            registerLaunchHandlers()
            return true
        }

        func applicationDidEnterBackground(_ application: UIApplication) {
            scheduleAppRefresh()
            scheduleDatabaseCleaningIfNeeded()
        }
    #else
        func didFinishLaunching() { registerLaunchHandlers() }

        func didEnterBackground() {
            scheduleAppRefresh()
            scheduleDatabaseCleaningIfNeeded()
        }
    #endif

    private func registerLaunchHandlers() {
        BGTaskScheduler.shared.register(forTaskWithIdentifier: Self.refreshIdentifier, using: nil) { task in
            // Downcast the parameter to an app refresh task as this identifier is used for a refresh request.
            self.handleAppRefresh(task: task as! BGAppRefreshTask)
        }
        BGTaskScheduler.shared.register(forTaskWithIdentifier: Self.cleanIdentifier, using: nil) { task in
            self.handleDatabaseCleaning(task: task as! BGProcessingTask)
        }
    }

    func scheduleAppRefresh() {
        let request = BGAppRefreshTaskRequest(identifier: Self.refreshIdentifier)
        request.earliestBeginDate = Date(timeIntervalSinceNow: 15 * 60)  // Fetch no earlier than 15 minutes from now

        do {
            try BGTaskScheduler.shared.submit(request)
        } catch {
            print("Could not schedule app refresh: \(error)")
        }
    }

    func scheduleDatabaseCleaningIfNeeded() {
        let now = Date()
        let oneWeek = TimeInterval(7 * 24 * 60 * 60)

        // Clean the database at most once per week.
        guard now > (lastCleaned ?? .distantPast) + oneWeek else { return }

        let request = BGProcessingTaskRequest(identifier: Self.cleanIdentifier)
        request.requiresNetworkConnectivity = false
        request.requiresExternalPower = true

        do {
            try BGTaskScheduler.shared.submit(request)
        } catch {
            print("Could not schedule database cleaning: \(error)")
        }
    }

    func handleAppRefresh(task: BGAppRefreshTask) {
        scheduleAppRefresh()

        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1

        let fetch = DownloadEntriesOperation(url: serverURL)
        let add = BlockOperation { [unowned fetch, store] in
            guard case let .success(entries)? = fetch.result else { return }
            store.insert(entries)
        }
        add.addDependency(fetch)

        task.expirationHandler = {
            // After all operations are cancelled, the completion block below is called to set the task to complete.
            queue.cancelAllOperations()
        }

        add.completionBlock = { [unowned add] in
            let isSuccess = (try? fetch.result?.get()) != nil && !add.isCancelled
            task.setTaskCompleted(success: isSuccess)
        }

        queue.addOperations([fetch, add], waitUntilFinished: false)
    }

    func handleDatabaseCleaning(task: BGProcessingTask) {
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1

        let clean = BlockOperation { [store] in store.deleteEntries(before: Date(timeIntervalSinceNow: -30 * 24 * 60 * 60)) }

        task.expirationHandler = { queue.cancelAllOperations() }

        clean.completionBlock = { [weak self, unowned clean] in
            let success = !clean.isCancelled
            if success { self?.lastCleaned = Date() }
            task.setTaskCompleted(success: success)
        }

        queue.addOperation(clean)
    }
}
