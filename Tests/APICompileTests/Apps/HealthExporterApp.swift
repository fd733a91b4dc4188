// Exports the samples of a health store in batches, at night and on external power. An interrupted export continues after the
// last exported sample (the anchor). The code was written for iOS, and only its imports were changed.
import BackgroundTasks
import BackgroundTransfer

struct HealthSample: Codable, Sendable, Equatable {
    let id: Int
    let type: String
    let value: Double
}

/// Hides HealthKit behind a protocol, so that tests can run the app without HealthKit.
protocol HealthSampleSource: Sendable {
    /// Returns the samples that follow an anchor, and the anchor for the next call.
    func samples(after anchor: Int, limit: Int) async throws -> (samples: [HealthSample], anchor: Int)
}

/// The methods of `BGTaskScheduler` that the app uses. The tests of this app implement these methods without the system.
protocol TaskScheduling: Sendable {
    func submit(_ taskRequest: BGTaskRequest) throws
    func pendingTaskRequests() async -> [BGTaskRequest]
    func cancel(taskRequestWithIdentifier identifier: String)
}

extension BGTaskScheduler: TaskScheduling {}

struct AnchorStore: Sendable {
    let url: URL

    var anchor: Int {
        get { (try? JSONDecoder().decode(Int.self, from: Data(contentsOf: url))) ?? 0 }
        nonmutating set {
            try? JSONEncoder().encode(newValue).write(
                to: url, options: [.atomic, .completeFileProtectionUntilFirstUserAuthentication])
        }
    }
}

final class HealthExporter: Sendable {
    static let taskIdentifier = "com.example.health.export"
    static let researchIdentifier = "com.example.health.research"

    private let source: any HealthSampleSource
    private let endpoint: URL
    private let anchors: AnchorStore
    private let scheduler: any TaskScheduling
    private let session: URLSession

    init(
        source: some HealthSampleSource, endpoint: URL, anchors: AnchorStore,
        scheduler: any TaskScheduling = BGTaskScheduler.shared
    ) {
        self.source = source
        self.endpoint = endpoint
        self.anchors = anchors
        self.scheduler = scheduler
        let configuration = URLSessionConfiguration.default
        configuration.waitsForConnectivity = true
        configuration.timeoutIntervalForResource = 5 * 60
        configuration.httpAdditionalHeaders = ["X-Device": ProcessInfo.processInfo.hostName]
        session = URLSession(configuration: configuration)
    }

    func registerBackgroundTask() {
        let registered = BGTaskScheduler.shared.register(
            forTaskWithIdentifier: HealthExporter.taskIdentifier,
            using: DispatchQueue(label: "com.example.health.export", qos: .utility), launchHandler: handleTask(_:))
        assert(registered, "BGTaskSchedulerPermittedIdentifiers lacks \(HealthExporter.taskIdentifier)")
    }

    func schedule(earliest: Date? = nil) async {
        guard await !scheduler.pendingTaskRequests().contains(where: { $0.identifier == Self.taskIdentifier }) else { return }
        let request = BGProcessingTaskRequest(identifier: Self.taskIdentifier)
        request.earliestBeginDate = earliest
        request.requiresNetworkConnectivity = true
        request.requiresExternalPower = true
        do {
            try scheduler.submit(request)
        } catch let error as BGTaskScheduler.Error {
            switch error.code {
            case .unavailable: print("background work is switched off")
            case .tooManyPendingTaskRequests: print("too many")
            case .notPermitted: print("not permitted")
            case .immediateRunIneligible: print("not now")
            @unknown default: print("unknown error \(error.errorCode)")
            }
        } catch {
            print("error: \(error)")
        }
    }

    /// Schedules the task of a health study. The method is called only if the app is part of a study.
    func scheduleResearch() throws {
        let request = BGHealthResearchTaskRequest(identifier: Self.researchIdentifier)
        request.protectionTypeOfRequiredData = .completeUntilFirstUserAuthentication
        request.requiresNetworkConnectivity = true
        try scheduler.submit(request)
    }

    private func handleTask(_ task: BGTask) {
        guard let task = task as? BGProcessingTask else {
            task.setTaskCompleted(success: false)
            return
        }
        let export = Task(priority: .utility) { [weak self] in
            do {
                try await self?.exportAll()
                task.setTaskCompleted(success: true)
            } catch {
                // The export was interrupted. The remaining samples are exported on a later night.
                await self?.schedule()
                task.setTaskCompleted(success: false)
            }
        }
        task.expirationHandler = {
            export.cancel()
        }
    }

    /// - Returns: The number of sent samples.
    @discardableResult
    func exportAll(batchSize: Int = 100) async throws -> Int {
        var count = 0
        while true {
            try Task.checkCancellation()
            let (samples, anchor) = try await source.samples(after: anchors.anchor, limit: batchSize)
            guard !samples.isEmpty else { return count }
            try await upload(samples)
            anchors.anchor = anchor
            count += samples.count
        }
    }

    private func upload(_ samples: [HealthSample]) async throws {
        var request = URLRequest(url: endpoint, cachePolicy: .reloadIgnoringLocalAndRemoteCacheData, timeoutInterval: 30)
        request.httpMethod = "POST"
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        request.allowsConstrainedNetworkAccess = false
        let body = try JSONEncoder().encode(samples)
        let (_, response) = try await session.upload(for: request, from: body)
        guard (response as? HTTPURLResponse)?.statusCode == 201 else { throw URLError(.badServerResponse) }
    }
}
