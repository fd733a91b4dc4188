import BackgroundScenes
import Foundation

/// The courier as an app without scenes, which begins uploads where nothing waits for them.
final class CourierUploads: ApplicationDelegate {
    func applicationDidFinishLaunching() {
        // As a method of an actor would: not on the main thread.
        Task.detached { for _ in 0..<2 { Self.begin() } }
    }

    /// As some tools end: by `exit`, beside a thread that copies and hashes files.
    static func exitBesideUploads() -> Never {
        let begun = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            while true {
                Self.begin()
                begun.signal()
            }
        }
        begun.wait()
        exit(0)
    }

    private nonisolated static func begin() {
        let environment = ProcessInfo.processInfo.environment
        guard let url = environment["COURIER_URL"].flatMap(URL.init(string:)), let path = environment["COURIER_FILE"] else {
            return
        }
        let configuration = URLSessionConfiguration.background(withIdentifier: "courier")
        // A launch would begin further uploads.
        configuration.sessionSendsLaunchEvents = false
        var put = URLRequest(url: url)
        put.httpMethod = "PUT"
        URLSession(configuration: configuration).uploadTask(with: put, fromFile: URL(fileURLWithPath: path)).resume()
    }
}
