import BackgroundScheduling
import CLibnotify
import DesktopBus
import Foundation

/// Controls sleep through logind, and reads the charge of the battery from UPower. The sleep manager connects only after an alarm
/// is needed.
package final class LogindSleep: SleepManager {
    private let loop: GLibLoop
    private let inhibitor: SleepInhibitor

    /// Creates a sleep manager.
    ///
    /// - Parameters:
    ///   - appName: the name that `systemd-inhibit --list` shows for the process that delays a sleep.
    ///   - handler: called on the loop's thread.
    package init(loop: GLibLoop, appName: String, handler: @escaping @Sendable (SleepEvent) -> Void) {
        self.loop = loop
        inhibitor = SleepInhibitor(appName: appName, handler: handler)
    }

    package func query() { loop.perform { [inhibitor] in inhibitor.query() } }
    package func delaySleep() { loop.perform { [inhibitor] in inhibitor.delaySleep() } }
    package func allowSleep() { loop.perform { [inhibitor] in inhibitor.allowSleep() } }
    package func suspend() { loop.perform { [inhibitor] in inhibitor.suspend() } }

    /// Returns the machine's current state, for a caller that needs the state once. Waits for the response, for at most some
    /// seconds.
    package static func query(on loop: GLibLoop) -> MachineState? {
        let answered = DispatchSemaphore(value: 0)
        nonisolated(unsafe) var seen: MachineState?
        let sleep = LogindSleep(loop: loop, appName: "doctor") { event in
            if case .machineState(let machine) = event { seen = machine }
            answered.signal()
        }
        sleep.query()
        let patience = 3 * Int(SleepInhibitor.patience) + 1_000
        guard answered.wait(timeout: .now() + .milliseconds(patience)) == .success else { return nil }
        return seen
    }
}

/// The members of the sleep manager that are used on the loop's thread.
private final class SleepInhibitor: @unchecked Sendable {  // This is safe because only the loop's thread uses its members.
    /// The maximum number of milliseconds that a service may take to respond.
    static let patience: gint = 3_000

    private let appName: String
    private let handler: @Sendable (SleepEvent) -> Void
    private var connection: OpaquePointer?
    /// The descriptor of logind's lock that delays a sleep. The lock is released when the descriptor is closed. -1 if no lock is
    /// held.
    private var lock: gint = -1
    /// The number of the last request for a lock. A reply to an earlier request is ignored.
    private var question = 0

    private static let login = "org.freedesktop.login1"
    private static let manager = "org.freedesktop.login1.Manager"
    private static let managerPath = "/org/freedesktop/login1"

    init(appName: String, handler: @escaping @Sendable (SleepEvent) -> Void) {
        (self.appName, self.handler) = (appName, handler)
    }

    deinit {
        if lock >= 0 { close(lock) }
        if let connection { g_object_unref(UnsafeMutableRawPointer(connection)) }
    }

    // MARK: Looking

    /// Sends three queries, one after the other. Only the reply of logind's manager is required, and other missing replies are
    /// ignored.
    func query() {
        var machine = MachineState()
        properties(of: Self.login, Self.managerPath, Self.manager) { [self] manager in
            guard let manager else { return handler(.machineState(nil)) }
            let isDocked = SleepProperty.boolean("Docked", in: manager) ?? false
            machine.isLidClosed = !isDocked && (SleepProperty.boolean("LidClosed", in: manager) ?? false)
            machine.isIdle = SleepProperty.boolean("IdleHint", in: manager) ?? false
            // "auto" is the caller's session, or the session on the user's screen.
            properties(of: Self.login, Self.managerPath + "/session/auto", "org.freedesktop.login1.Session") { [self] session in
                machine.isLocked = session.flatMap { SleepProperty.boolean("LockedHint", in: $0) } ?? false
                readBattery(machine)
            }
        }
    }

    private func readBattery(_ seen: MachineState) {
        let power = "org.freedesktop.UPower"
        properties(of: power, "/org/freedesktop/UPower", power) { [self] answer in
            guard let isOnBattery = answer.flatMap({ SleepProperty.boolean("OnBattery", in: $0) }) else {
                let supplies = PowerSupply.read(from: "/sys/class/power_supply")
                return report(seen, !PowerSupply.isOnExternalPower(supplies), PowerSupply.batteryPercent(supplies))
            }
            properties(of: power, "/org/freedesktop/UPower/devices/DisplayDevice", power + ".Device") { [self] device in
                let isThere = device.flatMap { SleepProperty.boolean("IsPresent", in: $0) } ?? false
                report(seen, isOnBattery, isThere ? device.flatMap { SleepProperty.number("Percentage", in: $0) } : nil)
            }
        }
    }

    private func report(_ seen: MachineState, _ isOnBattery: Bool, _ percent: Double?) {
        var machine = seen
        (machine.isOnBattery, machine.batteryPercent) = (isOnBattery, percent)
        handler(.machineState(machine))
    }

    // MARK: Delaying

    func delaySleep() {
        allowSleep()
        let number = question
        let words = ["sleep", appName, "Background work runs, or the machine will be woken for background work", "delay"]
        call(Self.login, Self.managerPath, Self.manager, "Inhibit", words.map { g_variant_new_string($0) }) { [self] answer in
            switch answer {
            case .success(let reply):
                let lock = reply.descriptor()
                guard number == question else {
                    // This lock belongs to an earlier request, which ended before logind replied.
                    if lock >= 0 { close(lock) }
                    return
                }
                guard lock >= 0 else { return handler(.notDelayed(isUnderWay: false)) }
                self.lock = lock
                handler(.delayed)
            case .failure(let trouble):
                guard number == question else { return }
                handler(.notDelayed(isUnderWay: trouble.name == "org.freedesktop.login1.OperationInProgress"))
            }
        }
    }

    func allowSleep() {
        question += 1
        if lock >= 0 { close(lock) }
        lock = -1
    }

    // MARK: Sleeping

    func suspend() {
        // The argument 0 prevents a password prompt, because no user is at the machine.
        call(Self.login, Self.managerPath, Self.manager, "Suspend", [g_variant_new_boolean(0)]) { [self] answer in
            if case .failure(let trouble) = answer { handler(.notSuspended(trouble.words)) }
        }
    }

    // MARK: Calling

    private func connect() -> OpaquePointer? {
        // If the bus was restarted, the earlier connection has already been closed.
        if let closed = connection, g_dbus_connection_is_closed(closed) != 0 {
            g_object_unref(UnsafeMutableRawPointer(closed))
            connection = nil
        }
        if connection == nil, case .open(let made) = SystemBusConnection.open() { connection = made }
        return connection
    }

    private func properties(
        of name: String, _ path: String, _ interface: String, _ tell: @escaping (OpaquePointer?) -> Void
    ) {
        call(name, path, "org.freedesktop.DBus.Properties", "GetAll", [g_variant_new_string(interface)]) { answer in
            guard case .success(let reply) = answer, GVariantReading.type(of: reply.value) == "(a{sv})",
                let all = g_variant_get_child_value(reply.value, 0)
            else { return tell(nil) }
            defer { g_variant_unref(all) }
            tell(all)
        }
    }

    private func call(
        _ name: String, _ path: String, _ interface: String, _ method: String, _ arguments: [OpaquePointer?],
        _ tell: @escaping (Result<SleepCall.Reply, SleepCall.Trouble>) -> Void
    ) {
        // The call takes ownership of the arguments.
        var arguments = arguments
        let parameters = g_variant_new_tuple(&arguments, gsize(arguments.count))
        guard let connection = connect() else {
            g_variant_unref(g_variant_ref_sink(parameters))
            return tell(.failure(.init(name: nil, words: "the system bus does not respond")))
        }
        g_dbus_connection_call_with_unix_fd_list(
            connection, name, path, interface, method, parameters, nil, G_DBUS_CALL_FLAGS_NONE, Self.patience, nil, nil,
            { source, result, data in
                guard let source, let data else { return }
                Unmanaged<SleepCall>.fromOpaque(data).takeRetainedValue().finish(OpaquePointer(source), result)
            }, Unmanaged.passRetained(SleepCall(tell)).toOpaque())
    }
}

/// A D-Bus call whose reply may contain a file descriptor.
private final class SleepCall {
    struct Reply {
        /// The value of the reply, which is valid only while the callback runs.
        let value: OpaquePointer
        fileprivate let files: UnsafeMutablePointer<GUnixFDList>?

        /// Returns the reply's file descriptor, or -1 if the reply contains no descriptor. The caller closes the descriptor.
        func descriptor() -> gint {
            guard let files, GVariantReading.type(of: value) == "(h)" else { return -1 }
            return g_unix_fd_list_get(files, 0, nil)
        }
    }

    struct Trouble: Error {
        /// The name of the D-Bus error.
        let name: String?
        let words: String
    }

    private let completion: (Result<Reply, Trouble>) -> Void

    init(_ tell: @escaping (Result<Reply, Trouble>) -> Void) { self.completion = tell }

    func finish(_ connection: OpaquePointer, _ result: OpaquePointer?) {
        var error: UnsafeMutablePointer<GError>?
        var files: UnsafeMutablePointer<GUnixFDList>?
        guard let answer = g_dbus_connection_call_with_unix_fd_list_finish(connection, &files, result, &error) else {
            defer { g_clear_error(&error) }
            let name = g_dbus_error_get_remote_error(error)
            defer { g_free(name) }
            let words = error.map { String(cString: $0.pointee.message) } ?? "no response"
            return completion(.failure(Trouble(name: name.map { String(cString: $0) }, words: words)))
        }
        defer {
            g_variant_unref(answer)
            if let files { g_object_unref(files) }
        }
        completion(.success(Reply(value: answer, files: files)))
    }
}

/// Reads properties of logind or UPower from a value of the type `a{sv}`.
private enum SleepProperty {
    static func boolean(_ name: String, in all: OpaquePointer) -> Bool? {
        GVariantReading.value(name, ofType: "b", in: all) { g_variant_get_boolean($0) != 0 }
    }

    static func number(_ name: String, in all: OpaquePointer) -> Double? {
        GVariantReading.value(name, ofType: "d", in: all) { g_variant_get_double($0) }
    }
}
