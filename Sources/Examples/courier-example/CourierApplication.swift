import BackgroundScenes
import Foundation

/// An application delegate that creates its session when it receives events of this session.
final class CourierApplication: BackgroundSessionApplicationDelegate {
    func applicationDidFinishLaunching() {
        log("launched")
        guard let url = ProcessInfo.processInfo.environment["COURIER_EPISODE"].flatMap(URL.init(string:)) else { return }
        // Simulates an app that begins its unfinished downloads in each launch, and keeps the bytes in memory.
        URLSession.shared.dataTask(with: url) { data, _, _ in log("episode \(data?.count ?? -1)") }.resume()
    }

    func applicationDidEnterBackground() { log("in the background") }

    func application(
        handleEventsForBackgroundURLSession identifier: String, completionHandler: @escaping @Sendable () -> Void
    ) {
        log("handle events for \(identifier)")
        let delegate = CourierDelegate()
        let session = URLSession(
            configuration: .background(withIdentifier: identifier), delegate: delegate, delegateQueue: nil)
        Task {
            await delegate.eventsDelivered()
            session.finishTasksAndInvalidate()
            completionHandler()
        }
    }
}
