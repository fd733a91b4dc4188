// A download manager of the iOS kind: it begins transfers, leaves, and is launched when they have ended. Its delegate writes
// what it hears to a log; the tests of background sessions are about what stands there.
import BackgroundCommands
import BackgroundScenes
import Foundation

struct CourierApp: App {
    var body: some Scene {
        Worker { await CourierCommands().run(Array(CommandLine.arguments.dropFirst())) }
            .backgroundTask(.urlSession(matching: { $0.hasPrefix("courier") })) { identifier in
                log("launched for \(identifier)")
                if ProcessInfo.processInfo.environment["COURIER_DEFAULTS"] != nil { noteStart() }
                let delegate = CourierDelegate()
                let session = URLSession(
                    configuration: .background(withIdentifier: identifier), delegate: delegate, delegateQueue: nil)
                // An app that knows how many it waits for, and returns while its delegate is still busy with the last.
                if let count = ProcessInfo.processInfo.environment["COURIER_COUNT"].flatMap({ Int($0) }) {
                    await delegate.completions(count)
                } else {
                    await delegate.eventsDelivered()
                }
                session.finishTasksAndInvalidate()
            }
    }
}

/// Whether the app was started before, as many an app asks its defaults; and in a suite how often.
func noteStart() {
    let defaults = UserDefaults.standard
    let suite = UserDefaults(suiteName: "group.courier")
    let count = suite?.integer(forKey: "starts") ?? 0
    log("started \(defaults.bool(forKey: "started")) \(count)")
    defaults.set(true, forKey: "started")
    suite?.set(count + 1, forKey: "starts")
}

/// A line of the log, written whole.
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
        case "delegate": hearAsDelegate()
        case "handler": hearAsHandler()
        case "application": hearAsApplication()
        case "begins": CourierUploads.main()
        case "exits": CourierUploads.exitBesideUploads()
        default: break
        }
        CourierApp.main()
    }

    /// Instead of a scene: a session with a delegate, made before anything else. Only in launches, which have no arguments; the
    /// commands make their own.
    private static func hearAsDelegate() {
        guard CommandLine.arguments.count == 1 else { return }
        let session = URLSession(
            configuration: .background(withIdentifier: "courier"), delegate: CourierDelegate(), delegateQueue: nil)
        withExtendedLifetime(session) { BGTaskScheduler.shared.run() }
    }

    /// Instead of a scene: an application delegate.
    @MainActor private static func hearAsApplication() {
        guard CommandLine.arguments.count == 1 else { return }
        CourierApplication.main()
    }

    /// Instead of a scene: as `UIApplicationDelegate` is asked.
    private static func hearAsHandler() {
        guard CommandLine.arguments.count == 1 else { return }
        BackgroundTransfers.handleEventsForBackgroundURLSession { identifier, completionHandler in
            log("handle events for \(identifier)")
            let delegate = CourierDelegate()
            let session = URLSession(
                configuration: .background(withIdentifier: identifier), delegate: delegate, delegateQueue: nil)
            Task {
                // An app that knows how many it waits for, and returns while its delegate is still busy with the last.
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
