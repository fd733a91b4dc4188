// A download manager like apps on iOS. The app begins transfers and exits. When the transfers are complete, the agent launches
// the app again. The session's delegate writes every event to a log, and the tests of background sessions read that log.
import BackgroundCommands
import BackgroundScenes
import Foundation

struct CourierApp: App {
    var body: some Scene {
        Worker { await CourierCommands().run(Array(CommandLine.arguments.dropFirst())) }
            .backgroundTask(.urlSession(matching: { $0.hasPrefix("courier") })) { identifier in
                log("launched for \(identifier)")
                if ProcessInfo.processInfo.environment["COURIER_DEFAULTS"] != nil { logStart() }
                let delegate = CourierDelegate()
                let session = URLSession(
                    configuration: .background(withIdentifier: identifier), delegate: delegate, delegateQueue: nil)
                // Simulates an app that counts its transfers. The app calls the completion handler while its delegate still
                // processes the last transfer.
                if let count = ProcessInfo.processInfo.environment["COURIER_COUNT"].flatMap({ Int($0) }) {
                    await delegate.completions(count)
                } else {
                    await delegate.eventsDelivered()
                }
                session.finishTasksAndInvalidate()
                if identifier == "courier" { beginLate() }
            }
    }
}

/// Begins a download in a task that the caller does not wait for, if the environment has an address.
func beginLate() {
    guard let url = ProcessInfo.processInfo.environment["COURIER_LATE"].flatMap(URL.init(string:)) else { return }
    Task.detached {
        usleep(100_000)
        let task = URLSession(configuration: .background(withIdentifier: "courier-late")).downloadTask(with: url)
        task.taskDescription = "late"
        task.resume()
    }
}

/// Logs whether the app was started before (from `UserDefaults.standard`), and how often (from the user defaults of an app
/// group).
func logStart() {
    let defaults = UserDefaults.standard
    let suite = UserDefaults(suiteName: "group.courier")
    let count = suite?.integer(forKey: "starts") ?? 0
    log("started \(defaults.bool(forKey: "started")) \(count)")
    defaults.set(true, forKey: "started")
    suite?.set(count + 1, forKey: "starts")
}

/// Appends a line to the log with a single `write`.
func log(_ line: String) {
    let path = ProcessInfo.processInfo.environment["COURIER_LOG"] ?? "/dev/stdout"
    let descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    let bytes = Array((line + "\n").utf8)
    write(descriptor, bytes, bytes.count)
    close(descriptor)
}

@main
enum CourierMain {
    static func main() {
        BackgroundCommands.runIfAsked()
        switch ProcessInfo.processInfo.environment["COURIER_FORM"] {
        case "delegate": runWithSessionDelegate()
        case "handler": runWithEventsHandler()
        case "application": runWithApplicationDelegate()
        case "begins": CourierUploads.main()
        case "exits": CourierUploads.exitBesideUploads()
        default: break
        }
        CourierApp.main()
    }

    /// Runs a session with a delegate instead of a scene. The session is created before all other work.
    ///
    /// The function runs only in processes that the agent launched, because only these processes have no arguments. Commands
    /// create their own session.
    private static func runWithSessionDelegate() {
        guard CommandLine.arguments.count == 1 else { return }
        let session = URLSession(
            configuration: .background(withIdentifier: "courier"), delegate: CourierDelegate(), delegateQueue: nil)
        withExtendedLifetime(session) { BGTaskScheduler.shared.run() }
    }

    /// Runs an application delegate instead of a scene.
    @MainActor private static func runWithApplicationDelegate() {
        guard CommandLine.arguments.count == 1 else { return }
        CourierApplication.main()
    }

    /// Handles the events of sessions in a closure instead of a scene. The closure has the parameters of
    /// `UIApplicationDelegate`'s method.
    private static func runWithEventsHandler() {
        guard CommandLine.arguments.count == 1 else { return }
        BackgroundTransfers.handleEventsForBackgroundURLSession { identifier, completionHandler in
            log("handle events for \(identifier)")
            let delegate = CourierDelegate()
            let session = URLSession(
                configuration: .background(withIdentifier: identifier), delegate: delegate, delegateQueue: nil)
            Task {
                // Simulates an app that counts its transfers. The app calls the completion handler while its delegate still
                // processes the last transfer.
                if let count = ProcessInfo.processInfo.environment["COURIER_COUNT"].flatMap({ Int($0) }) {
                    await delegate.completions(count)
                } else {
                    await delegate.eventsDelivered()
                }
                session.finishTasksAndInvalidate()
                completionHandler()
            }
        }
        BGTaskScheduler.shared.run()
    }
}
