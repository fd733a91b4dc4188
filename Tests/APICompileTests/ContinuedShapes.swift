// Code of public apps that uses the newer BackgroundTasks API. The code must compile, and each property must return the value
// that was set.
import BackgroundScenes
import Foundation
import Testing

/// Protocols of an app that tests its code without the scheduler.
protocol BGTaskScheduling {
    @discardableResult
    func register(
        forTaskWithIdentifier identifier: String, using queue: DispatchQueue?, launchHandler: @escaping (BGTask) -> Void
    ) -> Bool
    func submit(_ taskRequest: BGTaskRequest) throws
    func cancel(taskRequestWithIdentifier identifier: String)
    func cancelAllTaskRequests()
    func getPendingTaskRequests(completionHandler: @escaping @Sendable ([BGTaskRequest]) -> Void)
    func pendingTaskRequests() async -> [BGTaskRequest]
}

extension BGTaskScheduler: BGTaskScheduling {}

protocol BGTaskInterface: AnyObject {
    var expirationHandler: (() -> Void)? { get set }
    func setTaskCompleted(success: Bool)
}

extension BGTask: BGTaskInterface {}

@MainActor
final class Exporter {
    private let identifier = "com.example.photos.export.\(UUID().uuidString)"

    func begin(photos: [String]) async {
        let request = BGContinuedProcessingTaskRequest(
            identifier: identifier, title: "Exporting", subtitle: "\(photos.count) photos")
        request.strategy = .fail
        if BGTaskScheduler.supportedResources.contains(.gpu) { request.requiredResources = .gpu }
        do {
            try await BGTaskScheduler.shared.submitTaskRequest(request)
        } catch BGTaskScheduler.Error.immediateRunIneligible {
            print("try again later")
        } catch {
            print(error)
        }
        BGTaskScheduler.shared.submitTaskRequest(request) { error in print(error as Any) }
        BGTaskScheduler.shared.register(forTaskWithIdentifier: identifier, using: nil) { task in
            guard let task = task as? BGContinuedProcessingTask else { return }
            var wasExpired = false
            task.expirationHandler = { wasExpired = true }
            let progress = task.progress
            progress.totalUnitCount = Int64(photos.count)
            for (index, photo) in photos.enumerated() where !wasExpired {
                progress.completedUnitCount = Int64(index + 1)
                task.updateTitle("Exporting \(photo)", subtitle: "\(Int(progress.fractionCompleted * 100)) %")
            }
            task.setTaskCompleted(success: !wasExpired)
        }
    }
}

func research(_ task: BGTask) {
    switch task {
    case let task as BGHealthResearchTask: task.setTaskCompleted(success: false)
    case let task as BGProcessingTask: task.setTaskCompleted(success: true)
    case is BGAppRefreshTask, is BGContinuedProcessingTask: break
    default: break
    }
}

struct EverySceneApp: App {
    @Environment(\.scenePhase) private var phase

    var body: some Scene {
        WindowGroup { Text("") }
            .onChange(of: phase) { _, new in if new == .background { print("left") } }
            .backgroundTask(.appRefresh("refresh")) {}
            .backgroundTask(.processing("process")) {}
            .backgroundTask(.continuedProcessing("export")) { task in task.progress.completedUnitCount += 1 }
            .backgroundTask(.urlSession) { (identifier: String) in print(identifier) }
            .backgroundTask(.urlSession("one")) {}
            .backgroundTask(.urlSession(matching: { $0.hasPrefix("many") })) { identifier in print(identifier) }
            .backgroundTask(.notificationResponse) { response in print(response.identifier, response.actionIdentifier) }
            .backgroundTask(.significantTimeChange) {}
        Worker {}
    }
}

@Suite struct ContinuedShapeTests {
    @Test func `a copy of a continued processing request has every property`() throws {
        let request = BGContinuedProcessingTaskRequest(identifier: "a.1", title: "T", subtitle: "S")
        #expect(request.strategy == .queue)
        #expect(request.requiredResources == [])
        request.strategy = .fail
        request.requiredResources = .gpu
        let copy = try #require(request.copy() as? BGContinuedProcessingTaskRequest)
        #expect(copy !== request)
        #expect([copy.identifier, copy.title, copy.subtitle] == ["a.1", "T", "S"])
        #expect(copy.strategy == .fail)
        #expect(copy.requiredResources == .gpu)
    }

    @Test func `raw values are the values of Apple`() {
        #expect(BGContinuedProcessingTaskRequest.SubmissionStrategy.fail.rawValue == 0)
        #expect(BGContinuedProcessingTaskRequest.SubmissionStrategy.queue.rawValue == 1)
        #expect(BGContinuedProcessingTaskRequest.Resources.gpu.rawValue == 1)
        #expect(BGContinuedProcessingTaskRequest.Resources().rawValue == 0)
    }

    @Test func `a health research request is not permitted`() {
        let request = BGHealthResearchTaskRequest(identifier: "nobody.listed.this")
        #expect(request.protectionTypeOfRequiredData == .complete)
        #expect(throws: BGTaskScheduler.Error(.notPermitted)) { try BGTaskScheduler.shared.submit(request) }
    }
}

/// Tests that apps can examine errors in the usual ways.
@Suite struct ErrorShapeTests {
    private func fail(_ code: BGTaskScheduler.Error.Code) throws { throw BGTaskScheduler.Error(code) }

    @Test func `errors are matched in every spelling`() {
        do {
            try fail(.notPermitted)
        } catch BGTaskScheduler.Error.tooManyPendingTaskRequests {
            Issue.record("another code")
        } catch BGTaskScheduler.Error.notPermitted {
        } catch { Issue.record(error) }
        do {
            try fail(.unavailable)
        } catch let error as BGTaskScheduler.Error where error.code == .unavailable {
            #expect(error.code == BGTaskScheduler.Error.unavailable)
            switch error.code {
            case BGTaskScheduler.Error.unavailable: break
            case .immediateRunIneligible, .notPermitted, .tooManyPendingTaskRequests: Issue.record("another code")
            default: Issue.record("another code")
            }
        } catch { Issue.record(error) }
        let code: BGTaskScheduler.Error.Code = BGTaskScheduler.Error.immediateRunIneligible
        #expect(code.rawValue == 4)
        let error = BGTaskScheduler.Error(.notPermitted, userInfo: [NSLocalizedDescriptionKey: "no"]) as NSError
        #expect(error.localizedDescription == "no")
        #expect(error.domain == BGTaskScheduler.errorDomain)
    }
}
