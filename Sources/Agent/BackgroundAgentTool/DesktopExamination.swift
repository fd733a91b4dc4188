import BackgroundNotices
import BackgroundScheduling
import DesktopServices
import Dispatch
import Foundation
import Synchronization

/// Examines this desktop in the same way as an agent, for processes without the desktop libraries (an app's process).
enum DesktopExamination {
    /// The maximum number of seconds that the notification server may take to respond.
    private static let patience = 5.0

    /// Prints a ``NotificationServerReport`` as one line of JSON. The query takes some milliseconds, or up to the timeout if the
    /// server does not respond.
    ///
    /// - Parameter address: the address of the user's session bus, as stored in the agent's database (ledger).
    static func printNotifications(busAddress address: String?) -> Int32 { print(notifications(address)) }

    /// Prints a ``ConditionsReport`` as one line of JSON.
    static func printConditions() -> Int32 { print(conditions()) }

    private static func print(_ report: some Encodable) -> Int32 {
        guard let data = try? JSONEncoder().encode(report) else { return 70 }
        FileHandle.standardOutput.write(data + Data("\n".utf8))
        return 0
    }

    private static func conditions() -> ConditionsReport {
        let loop = GLibLoop(name: "desktop")
        let answered = DispatchSemaphore(value: 0)
        // The handler is called for the first time when the conditions are complete.
        let monitor = DesktopConditionsMonitor(loop: loop, handler: { _ in answered.signal() })
        _ = answered.wait(timeout: .now() + patience)
        var conditions = monitor.current
        // The next queries are skipped, because each query would also wait for the bus.
        if DesktopConditionsMonitor.isSystemBusSilent {
            return ConditionsReport(conditions: conditions, hearsOfSleep: false, isSystemBusSilent: true)
        }
        conditions.isLowPowerMode = conditions.isLowPowerMode || DesktopConditionsMonitor.isPowerSaved
        return ConditionsReport(
            conditions: conditions, hearsOfSleep: DesktopConditionsMonitor.hearsOfSleep,
            machine: LogindSleep.query(on: loop))
    }

    private static func notifications(_ address: String?) -> NotificationServerReport {
        let loop = GLibLoop(name: "desktop")
        let presenter = DesktopPresenter(loop: loop, appName: "doctor") { _ in }
        let state = Mutex<(pid: Int32?, report: NotificationServerReport?)>((nil, nil))
        let answered = DispatchSemaphore(value: 0)
        presenter.connect(busAddress: address)
        // The process id is queried first, because the bus reports it even if the server does not respond.
        presenter.findServerProcess { pid in state.withLock { $0.pid = pid } }
        presenter.describeServer { result in
            state.withLock { state in
                switch result {
                case .success(let server):
                    state.report = NotificationServerReport(
                        name: server.name, version: server.version, capabilities: server.capabilities.sorted(), pid: state.pid)
                case .failure(let failure): state.report = NotificationServerReport(failure, pid: state.pid)
                }
            }
            answered.signal()
        }
        _ = answered.wait(timeout: .now() + patience)
        // A loop that still waits for a reply is not joined, because the process ends.
        return state.withLock {
            $0.report
                ?? NotificationServerReport(trouble: .silent, detail: "no response within \(Int(patience)) s", pid: $0.pid)
        }
    }
}
