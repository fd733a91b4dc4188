import BackgroundScheduling
import CLibnotify
import Glibc

/// The members of the conditions monitor that are used on the loop's thread.
final class ConditionsReader: @unchecked Sendable {  // This is safe because only the loop's thread uses its members.
    private let powerSupplies: String
    private let localTime: String
    private let handler: @Sendable (DesktopConditions) -> Void
    private let onSignal: @Sendable (DesktopSignal) -> Void

    private let loop: GLibLoop
    private var systemBus: SystemBus?
    /// `true` while the monitor waits for a system bus that does not respond.
    private var isBusSilent = false
    private var network: OpaquePointer?
    private var networkHandlers: [gulong] = []
    private var zoneFile: UnsafeMutablePointer<GFileMonitor>?
    private var zoneHandler: gulong = 0
    /// `true` if UPower reports battery power. `nil` if UPower does not report the power supply. If the value is `nil`, the
    /// kernel's list of power supplies is read.
    private var isOnBattery: Bool?
    /// The last report of NetworkManager. `nil` if NetworkManager does not run.
    private var managed: NetworkManagerReport?
    private var profiles: OpaquePointer?
    private var profileHandler: gulong = 0
    private var published: Published?
    /// Services that have not responded to their first query. No conditions are published until all services have responded,
    /// because an assumed condition would be reported as a known condition. For example, work that waits for external power would
    /// be launched on battery.
    private var unanswered: Set<Service> = []

    /// The last reported conditions, and the network to which they belong.
    private struct Published: Equatable {
        var conditions: DesktopConditions
        var manager: NetworkManagerReport?
        var addresses: Set<String>
    }

    private enum Service {
        case power
        case network
    }

    init(
        loop: GLibLoop, powerSupplies: String, localTime: String, handler: @escaping @Sendable (DesktopConditions) -> Void,
        onSignal: @escaping @Sendable (DesktopSignal) -> Void
    ) {
        self.loop = loop
        self.powerSupplies = powerSupplies
        self.localTime = localTime
        self.handler = handler
        self.onSignal = onSignal
    }

    func start() {
        connect()
        watchNetwork()
        watchZoneFile()
        publishChanges()
    }

    /// Opens the system bus before GIO's monitors open it. GIO's monitors use GLib's default for the shared connection: the
    /// process exits if the connection closes. These monitors also wait for a bus that does not respond.
    private func connect() {
        switch SystemBusConnection.open() {
        case .open(let connection):
            listen(to: connection)
            watchPowerProfile()
        case .isAbsent: watchPowerProfile()
        case .isSilent: connectWhenBusResponds()
        }
    }

    private func listen(to connection: OpaquePointer) {
        unanswered = [.power, .network]
        systemBus = SystemBus(
            connection,
            onBattery: { [unowned self] isOnBattery in
                self.isOnBattery = isOnBattery
                unanswered.remove(.power)
                publishChanges()
            },
            onNetwork: { [unowned self] report in
                managed = report
                unanswered.remove(.network)
                publishChanges()
            },
            onSignal: { [unowned self] signal in
                onSignal(signal)
                guard signal != .falling else { return }
                // During sleep, a laptop is often plugged in, unplugged or moved to another network, so the state is queried
                // again.
                systemBus?.askNetwork()
                publishChanges()
            })
    }

    /// Connects to the system bus after the bus responds. Until the bus responds, the state that the kernel reports is used.
    private func connectWhenBusResponds() {
        isBusSilent = true
        SystemBusConnection.whenItAnswers { [loop, weak self] in
            guard let self else { return }
            loop.perform { self.connectAgain() }
        }
    }

    private func connectAgain() {
        guard isBusSilent else { return }
        isBusSilent = false
        connect()
        publishChanges()
    }

    func stop() {
        isBusSilent = false
        systemBus = nil
        if let network {
            for handler in networkHandlers { g_signal_handler_disconnect(UnsafeMutableRawPointer(network), handler) }
        }
        network = nil
        networkHandlers = []
        if let profiles {
            g_signal_handler_disconnect(UnsafeMutableRawPointer(profiles), profileHandler)
            g_object_unref(UnsafeMutableRawPointer(profiles))
        }
        profiles = nil
        if let zoneFile {
            g_signal_handler_disconnect(zoneFile, zoneHandler)
            g_file_monitor_cancel(zoneFile)
            g_object_unref(zoneFile)
        }
        zoneFile = nil
    }

    func publishChanges() {
        guard unanswered.isEmpty else { return }
        let interfaces = NetworkInterface.current()
        // GIO reports "unavailable" if no default route exists. However, hosts of the local network can still be reached.
        let isAvailable = NetworkManagerReport.isNetworkAvailable(
            managed, monitor: network.map { g_network_monitor_get_network_available($0) != 0 } ?? false,
            hasInterface: NetworkInterface.canReachOthers(interfaces), hasDevice: NetworkInterface.hasDevice(interfaces))
        let conditions = DesktopConditions(
            isNetworkAvailable: isAvailable,
            isNetworkMetered: managed?.isMetered ?? network.map { g_network_monitor_get_network_metered($0) != 0 } ?? false,
            isNetworkConstrained: managed?.isConstrained ?? false,
            isNetworkCellular: isAvailable && (managed?.isCellular ?? NetworkInterface.isCellular(interfaces)),
            isNetworkWiFi: isAvailable && (managed?.isWiFi ?? NetworkInterface.isWiFi(interfaces)),
            isOnExternalPower: isOnBattery.map { !$0 }
                ?? PowerSupply.isOnExternalPower(PowerSupply.read(from: powerSupplies)),
            isLowPowerMode: profiles.map { g_power_profile_monitor_get_power_saver_enabled($0) != 0 } ?? false,
            knowledge: knowledge(isNetworkAvailable: isAvailable))
        // The network itself is also compared, because another network with the same conditions may have no captive portal.
        let current = Published(
            conditions: conditions, manager: managed, addresses: NetworkInterface.addresses(interfaces))
        guard current != published else { return }
        published = current
        handler(conditions)
    }

    /// Returns which conditions are known because a service or the kernel reports these conditions.
    private func knowledge(isNetworkAvailable: Bool) -> DesktopConditions.Knowledge {
        let monitor = network.flatMap { g_type_name_from_instance(UnsafeMutablePointer<GTypeInstance>($0)) }
            .map { String(cString: $0) }
        return DesktopConditions.Knowledge(
            network: NetworkManagerReport.isNetworkKnown(managed, monitor: monitor),
            metered: NetworkManagerReport.isMeteredKnown(managed, monitor: monitor, isNetworkAvailable: isNetworkAvailable),
            power: isOnBattery != nil || access(powerSupplies, R_OK) == 0)
    }

    private func watchNetwork() {
        // A monitor that does not use the bus is chosen, because GIO's other monitor would wait for the silent bus.
        let variable = "GIO_USE_NETWORK_MONITOR"
        let isChosen = isBusSilent && g_getenv(variable) == nil
        if isChosen { g_setenv(variable, "netlink", 1) }
        defer { if isChosen { g_unsetenv(variable) } }
        // The monitor is a singleton that is never freed.
        guard let monitor = g_network_monitor_get_default() else { return }
        network = monitor
        let context = Unmanaged.passUnretained(self).toOpaque()
        networkHandlers = [
            stormy_connect_network_changed(
                monitor, { _, _, data in ConditionsReader.from(data).publishChanges() }, context),
            stormy_connect_network_metered(
                monitor, { _, _, data in ConditionsReader.from(data).publishChanges() }, context),
        ]
    }

    private func watchPowerProfile() {
        guard let monitor = g_power_profile_monitor_dup_default() else { return }
        profiles = monitor
        profileHandler = stormy_connect_power_saver(
            monitor, { _, _, data in ConditionsReader.from(data).publishChanges() },
            Unmanaged.passUnretained(self).toOpaque())
    }

    private func watchZoneFile() {
        // `g_file_new_for_path` is not used because of the file system gvfs. If gvfs is installed, gvfs uses the shared session
        // connection and never releases this connection. gvfs may even start a bus.
        guard let file = g_vfs_get_file_for_path(g_vfs_get_local(), localTime) else { return }
        defer { g_object_unref(UnsafeMutableRawPointer(file)) }
        guard let monitor = g_file_monitor_file(file, G_FILE_MONITOR_NONE, nil, nil) else { return }
        zoneFile = monitor
        zoneHandler = stormy_connect_file_changed(
            monitor,
            { _, _, _, event, data in
                // A program replaces a link in one of two ways: it removes and creates the link, or it renames another link. In
                // each case the last event is "created".
                guard event == G_FILE_MONITOR_EVENT_CREATED || event == G_FILE_MONITOR_EVENT_CHANGES_DONE_HINT else {
                    return
                }
                ConditionsReader.from(data).onSignal(.timeZoneChanged)
            },
            Unmanaged.passUnretained(self).toOpaque())
    }

    private static func from(_ data: gpointer?) -> ConditionsReader {
        guard let data else { fatalError("a callback for network and power was called without a ConditionsReader") }
        return Unmanaged<ConditionsReader>.fromOpaque(data).takeUnretainedValue()
    }
}
