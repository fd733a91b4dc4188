import BackgroundNotices
import BackgroundScheduling
import DesktopServices
import Dispatch
import Foundation
import Synchronization

/// Examines this desktop in the same way as an agent. Processes that do not load the desktop libraries, for example an app's
/// process, start this program for the examination.
enum DesktopExamination {
    /// The maximum number of seconds that the notification server may take to respond.
    private static let patience = 5.0

    /// Prints a ``NotificationServerReport`` as a single line of JSON. The query takes some milliseconds, or the complete timeout
    /// if the server does not respond.
    ///
    /// - Parameter address: the address of the user's session bus, which the agent's database (ledger) contains.
    static func printNotifications(busAddress address: String?) -> Int32 { print(notifications(address)) }

    /// Prints a ``ConditionsReport`` as a single line of JSON.
    static func printConditions() -> Int32 { print(conditions()) }

    private static func print(_ report: some Encodable) -> Int32 {
        guard let data = try? JSONEncoder().encode(report) else { return 70 }
        FileHandle.standardOutput.write(data + Data("\n".utf8))
        return 0
    }

    private static func conditions() -> ConditionsReport {
        let loop = GLibLoop(name: "desktop")
        let answered = DispatchSemaphore(value: 0)
        // The handler is called for the first time when all conditions are known.
        let monitor = DesktopConditionsMonitor(loop: loop, handler: { _ in answered.signal() })
        _ = answered.wait(timeout: .now() + patience)
        var conditions = monitor.current
        // If the bus is silent, the next queries are skipped, because each query would also wait for the bus.
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
        // The loop may still wait for a reply. The process ends, so it does not wait for the loop.
        return state.withLock {
            $0.report
                ?? NotificationServerReport(trouble: .silent, detail: "no response within \(Int(patience)) s", pid: $0.pid)
        }
    }
}
