import BackgroundScenes
import Foundation

/// An application delegate that begins uploads without waiting for them.
final class CourierUploads: ApplicationDelegate {
    func applicationDidFinishLaunching() {
        // The uploads begin in a detached task, because the methods of an actor also do not run on the main thread.
        Task.detached { for _ in 0..<2 { Self.begin() } }
    }

    /// Exits with `exit` while another thread copies and hashes files, as some command-line tools do.
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
        // Launch events are off, because each launch would begin new uploads.
        configuration.sessionSendsLaunchEvents = false
        var put = URLRequest(url: url)
        put.httpMethod = "PUT"
        URLSession(configuration: configuration).uploadTask(with: put, fromFile: URL(fileURLWithPath: path)).resume()
    }
}
