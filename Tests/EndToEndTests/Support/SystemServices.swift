import Foundation

/// A private system bus with UPower, logind, timedate1, NetworkManager and the power profile daemon. python3-dbusmock
/// simulates these services. The requests to logind are logged in a file.
final class SystemServices {
    enum Service: String, CaseIterable {
        case power = "upower"
        case login = "logind"
        case time = "timedated"
        case network = "networkmanager"
        case profiles = "power_profiles_daemon"

        var name: String {
            switch self {
            case .power: "org.freedesktop.UPower"
            case .login: "org.freedesktop.login1"
            case .time: "org.freedesktop.timedate1"
            case .network: "org.freedesktop.NetworkManager"
            case .profiles: "net.hadess.PowerProfiles"
            }
        }

        /// The interface of the service's main object.
        var interface: String { self == .login ? name + ".Manager" : name }

        var path: String { "/" + name.replacingOccurrences(of: ".", with: "/") }
    }

    private let folder: URL
    private let address: String
    private let bus: Child
    private var mocks: [Service: Child] = [:]
    private let reader: LineReader

    init(_ services: [Service] = Service.allCases) throws {
        folder = try TestFolder.make("sys")
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else { throw Desktop.Trouble("no pipe") }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        let configuration = folder.appendingPathComponent("bus.conf")
        let text = """
            <busconfig><type>session</type><listen>unix:dir=\(folder.path)</listen>
            <policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy>
            </busconfig>
            """
        try Data(text.utf8).write(to: configuration)
        bus = try Child(
            "dbus-daemon", ["--config-file=\(configuration.path)", "--nofork", "--print-address=1"],
            environment: ProcessInfo.processInfo.environment, output: ends[1])
        close(ends[1])
        reader = LineReader(ends[0])
        guard let address = reader.next(within: 240) else { throw Desktop.Trouble("dbus-daemon gave no address") }
        self.address = address
        try Data(Self.login.utf8).write(to: folder.appendingPathComponent("login.py"))
        try Data().write(to: URL(fileURLWithPath: loginLog))
        for service in services { try launch(service) }
        for service in services { try awaitName(of: service) }
        guard services.contains(.network) else { return }
        // The template of the mock is older than the current NetworkManager, so the test adds the newer properties.
        guard services.contains(.network) else { return }
        // The property is a path, but the mock can add only strings.
        let first = "'/org/freedesktop/NetworkManager/ActiveConnection/1'"
        for (property, value) in [
            ("Metered", "uint32 0"), ("PrimaryConnectionType", "'802-3-ethernet'"), ("PrimaryConnection", first),
        ] {
            try mock(.network, ["AddProperty", Service.network.name, property, "<\(value)>"])
        }
    }

    private func launch(_ service: Service) throws {
        // Debian's Python is used, because another Python in the path does not have the needed modules.
        let isLogin = service == .login
        let template = isLogin ? folder.appendingPathComponent("login.py").path : service.rawValue
        mocks[service] = try Child(
            "/usr/bin/python3", ["-m", "dbusmock", "--template", template] + (isLogin ? ["--logfile", loginLog] : []),
            environment: own)
    }

    private func awaitName(of service: Service) throws { try gdbus(["wait", "--system", "--timeout", "20", service.name]) }

    /// Stops the bus process. The bus then accepts connections but does not reply.
    func freeze() { kill(bus.pid, SIGSTOP) }
    func thaw() { kill(bus.pid, SIGCONT) }

    func start(_ service: Service) throws {
        try launch(service)
        try awaitName(of: service)
    }

    func end(_ service: Service) { mocks.removeValue(forKey: service)?.end() }

    private func mock(_ service: Service, _ call: [String], at path: String = "") throws {
        try gdbus(
            ["call", "--system", "-d", service.name, "-o", service.path + path, "-m", "org.freedesktop.DBus.Mock." + call[0]]
                + call.dropFirst())
    }

    deinit {
        thaw()
        for mock in mocks.values { mock.end() }
        bus.end()
        try? FileManager.default.removeItem(at: folder)
    }

    var environment: [String: String] { ["DBUS_SYSTEM_BUS_ADDRESS": address] }

    private var own: [String: String] { ProcessInfo.processInfo.environment.merging(environment) { $1 } }

    private func gdbus(_ arguments: [String]) throws {
        let result = try Child.run("gdbus", arguments, environment: own)
        guard result.status == 0 else { throw Desktop.Trouble("gdbus \(arguments): \(result.errors)") }
    }

    /// Changes a property and emits its change signal. `value` is written in the text form of GVariant.
    func set(_ service: Service, _ property: String, _ value: String) throws {
        try mock(service, ["UpdateProperties", service.interface, "{'\(property)': <\(value)>}"])
    }

    /// Changes a property of another object. `path` is relative to the main object.
    func set(_ service: Service, at path: String, _ interface: String, _ property: String, _ value: String) throws {
        try mock(service, ["UpdateProperties", interface, "{'\(property)': <\(value)>}"], at: path)
    }

    // MARK: Sleep

    private var loginLog: String { folder.appendingPathComponent("login.log").path }

    /// The logged requests for locks and for sleep. The entries are "Inhibit", "Refused", "Released" and "Suspend".
    var asked: [String] {
        let text = (try? String(contentsOfFile: loginLog, encoding: .utf8)) ?? ""
        return text.split(separator: "\n").compactMap { line in
            let words = line.split(separator: " ")
            return words.count > 1 && ["Inhibit", "Refused", "Released", "Suspend"].contains(words[1]) ? String(words[1]) : nil
        }
    }

    /// Waits until logind has received a number of requests.
    func waitUntilAsked(_ what: String, count: Int = 1) throws {
        let isThere = FileWatch.wait(loginLog) { _ in self.asked.filter { $0 == what }.count >= count }
        if isThere == nil { throw Desktop.Trouble("logind was not asked for \(what), but \(asked)") }
    }

    /// The mock of logind. Like logind, the mock refuses a lock while a sleep is in progress (systemd#14045).
    private static let login = #"""
        import os
        import dbus
        from gi.repository import GLib

        BUS_NAME = 'org.freedesktop.login1'
        MAIN_OBJ = '/org/freedesktop/login1'
        MAIN_IFACE = 'org.freedesktop.login1.Manager'
        SYSTEM_BUS = True

        def load(mock, parameters):
            mock.AddMethods(MAIN_IFACE, [('Suspend', 'b', '', '')])
            mock.AddProperties(MAIN_IFACE, dbus.Dictionary({
                'IdleHint': False, 'LidClosed': False, 'Docked': False, 'PreparingForSleep': False}, signature='sv'))
            mock.AddObject(MAIN_OBJ + '/session/auto', 'org.freedesktop.login1.Session', {'LockedHint': False}, [])

        @dbus.service.method(MAIN_IFACE, in_signature='ssss', out_signature='h')
        def Inhibit(self, what, who, why, mode):
            if (what, mode) != ('sleep', 'delay'):
                raise dbus.exceptions.DBusException('not expected', name='org.freedesktop.DBus.Error.InvalidArgs')
            if self.Get(MAIN_IFACE, 'PreparingForSleep'):
                self.log('Refused')
                raise dbus.exceptions.DBusException(
                    'The operation inhibition has been requested for is already running',
                    name='org.freedesktop.login1.OperationInProgress')
            reader, writer = os.pipe()

            def released(descriptor, condition):
                os.close(descriptor)
                self.log('Released')
                return False

            GLib.unix_fd_add_full(GLib.PRIORITY_HIGH, reader, GLib.IO_HUP, released)
            GLib.idle_add(os.close, writer)
            return writer
        """#

    func prepareForSleep(_ isStarting: Bool) throws {
        try mock(.login, ["EmitSignal", "org.freedesktop.login1.Manager", "PrepareForSleep", "b", "[<\(isStarting)>]"])
    }
}
