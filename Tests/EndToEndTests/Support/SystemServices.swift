import Foundation

/// A system bus of a test's own, with UPower, logind, timedate1, NetworkManager and the profile daemon on it, as
/// python3-dbusmock plays them.
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
        guard let address = reader.next(within: 20) else { throw Desktop.Trouble("dbus-daemon gave no address") }
        self.address = address
        for service in services { try launch(service) }
        for service in services { try awaitName(of: service) }
        guard services.contains(.network) else { return }
        // Of a NetworkManager of today; the template is of an older one.
        guard services.contains(.network) else { return }
        // A path there; the mock can change text alone.
        let first = "'/org/freedesktop/NetworkManager/ActiveConnection/1'"
        for (property, value) in [
            ("Metered", "uint32 0"), ("PrimaryConnectionType", "'802-3-ethernet'"), ("PrimaryConnection", first),
        ] {
            try mock(.network, ["AddProperty", Service.network.name, property, "<\(value)>"])
        }
    }

    private func launch(_ service: Service) throws {
        // Debian's own Python: another one in the path does not have its modules.
        mocks[service] = try Child("/usr/bin/python3", ["-m", "dbusmock", "--template", service.rawValue], environment: own)
    }

    private func awaitName(of service: Service) throws { try gdbus(["wait", "--system", "--timeout", "20", service.name]) }

    func start(_ service: Service) throws {
        try launch(service)
        try awaitName(of: service)
    }

    func end(_ service: Service) { mocks.removeValue(forKey: service)?.end() }

    private func mock(_ service: Service, _ call: [String]) throws {
        try gdbus(
            ["call", "--system", "-d", service.name, "-o", service.path, "-m", "org.freedesktop.DBus.Mock." + call[0]]
                + call.dropFirst())
    }

    deinit {
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

    /// Changes a property, and tells of it. `value` in GVariant's text form.
    func set(_ service: Service, _ property: String, _ value: String) throws {
        try mock(service, ["UpdateProperties", service.name, "{'\(property)': <\(value)>}"])
    }

    func prepareForSleep(_ isStarting: Bool) throws {
        try mock(.login, ["EmitSignal", "org.freedesktop.login1.Manager", "PrepareForSleep", "b", "[<\(isStarting)>]"])
    }
}
