// Code of real iOS apps in its usual forms. The code must compile.
import BackgroundTasks
import BackgroundTransfer
import UserNotifications

final class AppDelegate: @unchecked Sendable {  // because a compile test never runs it
    func registerAll() {
        BGTaskScheduler.shared.register(forTaskWithIdentifier: "a.refresh", using: nil) { task in
            self.handleRefresh(task: task as! BGAppRefreshTask)
        }
        BGTaskScheduler.shared.register(forTaskWithIdentifier: "a.process", using: .main, launchHandler: handle(_:))
        let isRegistered = BGTaskScheduler.shared.register(forTaskWithIdentifier: "a.kept", using: DispatchQueue(label: "a")) {
            @Sendable task in
            guard let task = task as? BGProcessingTask else { return }
            task.setTaskCompleted(success: false)
        }
        print(isRegistered)
    }

    func handleRefresh(task: BGAppRefreshTask) {
        schedule()
        let work = Task {
            task.setTaskCompleted(success: !Task.isCancelled)
        }
        task.expirationHandler = {
            work.cancel()
            task.setTaskCompleted(success: false)
        }
    }

    func handle(_ task: BGTask) {
        task.expirationHandler = { [weak task] in task?.setTaskCompleted(success: false) }
        task.setTaskCompleted(success: true)
    }

    func schedule() {
        BGTaskScheduler.shared.cancelAllTaskRequests()
        let request = BGProcessingTaskRequest(identifier: "a.process")
        request.requiresNetworkConnectivity = true
        request.requiresExternalPower = true
        request.earliestBeginDate = nil
        do {
            try BGTaskScheduler.shared.submit(request)
        } catch BGTaskScheduler.Error.notPermitted {
            print("not permitted")
        } catch let error as BGTaskScheduler.Error where error.code == .unavailable {
            print(error.localizedDescription)
        } catch {
            if let error = error as? BGTaskScheduler.Error {
                switch error.code {
                case .tooManyPendingTaskRequests, .notPermitted, .unavailable, .immediateRunIneligible: print(error)
                @unknown default: print("?")
                }
            }
        }
        BGTaskScheduler.shared.getPendingTaskRequests { requests in print(requests.map(\.identifier)) }
    }
}

extension BGTaskScheduler.Error.Code: CustomStringConvertible {
    public var description: String { "\(rawValue)" }
}

final class Downloader: NSObject, URLSessionDownloadDelegate {
    func start() {
        let session = URLSession(
            configuration: .background(withIdentifier: "downloads"), delegate: self, delegateQueue: nil)
        let task = session.downloadTask(with: URL(string: "https://example.org/file")!)
        task.taskDescription = "a file"
        task.resume()
        print(task.taskIdentifier)
    }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {}
    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {}
    func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {}
}

func askAndNotify() async throws {
    let center = UNUserNotificationCenter.current()
    guard try await center.requestAuthorization(options: [.alert, .sound, .badge]) else { return }
    let content = UNMutableNotificationContent()
    content.title = "Title"
    content.sound = .default
    content.userInfo = ["key": 1]
    let trigger = UNTimeIntervalNotificationTrigger(timeInterval: 5, repeats: false)
    center.add(UNNotificationRequest(identifier: "n", content: content, trigger: trigger)) { error in print(error as Any) }
    center.removeDeliveredNotifications(withIdentifiers: ["n"])
}
