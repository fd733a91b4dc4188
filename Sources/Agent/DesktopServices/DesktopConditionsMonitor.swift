import BackgroundScheduling
import CLibnotify
import Foundation

/// An event of the machine that the scheduler needs.
package enum DesktopSignal: Sendable, Equatable {
    /// The machine is about to sleep.
    case falling
    /// The machine woke from sleep.
    case resumed
    /// The system's time zone changed. One change may be reported twice, by the file watch and by the service.
    case timeZoneChanged
}

/// Watches network, power, sleep and time zone of this machine without polling.
///
/// The network comes from GIO's monitor, which uses NetworkManager if NetworkManager runs. Power comes from UPower, or from the
/// kernel if UPower is missing. Sleep comes from logind. Each service and the system bus may be missing. If a service does not
/// respond, the kernel's state is used until the service responds.
package final class DesktopConditionsMonitor: ConditionsSource {
    private let loop: GLibLoop
    private let latest: LatestConditions
    private let desk: ConditionsDesk

    /// Starts watching.
    ///
    /// - Parameters:
    ///   - powerSupplies: the kernel's class directory of power supplies.
    ///   - localTime: the path of the link to the system's time zone file.
    ///   - handler: called on the loop's thread with the conditions at the start (when the services have responded, or after 3 s),
    ///     and after each change. The handler is also called after a change to another network with the same properties.
    ///   - onSignal: called on the loop's thread with each event.
    package init(
        loop: GLibLoop, powerSupplies: String = "/sys/class/power_supply", localTime: String = "/etc/localtime",
        handler: @escaping @Sendable (DesktopConditions) -> Void,
        onSignal: @escaping @Sendable (DesktopSignal) -> Void = { _ in }
    ) {
        self.loop = loop
        // The first value comes from the network interfaces and the kernel, so it can be read at once, before the thread has
        // queried a service.
        let latest = LatestConditions(
            DesktopConditions(
                isNetworkAvailable: NetworkInterface.canReachOthers(NetworkInterface.current()),
                isNetworkMetered: false,
                isOnExternalPower: PowerSupply.isOnExternalPower(PowerSupply.read(from: powerSupplies))))
        self.latest = latest
        let desk = ConditionsDesk(
            loop: loop, powerSupplies: powerSupplies, localTime: localTime,
            handler: { conditions in
                latest.value = conditions
                handler(conditions)
            },
            onSignal: onSignal)
        self.desk = desk
        loop.perform { desk.start() }
    }

    deinit {
        stop()
    }

    /// The last observed conditions. This property can be read on any thread.
    package var current: DesktopConditions { latest.value }

    /// Reads the conditions again, for example if no service reports changes of the charger (a machine without UPower). The handler is
    /// called only if a condition differs.
    package func refresh() {
        loop.perform { [desk] in desk.publishChanges() }
    }

    /// `true` if the system bus exists but does not respond. Connects to the bus and waits for a response.
    package static var isSystemBusSilent: Bool {
        switch SystemBusConnection.open() {
        case .open(let connection):
            g_object_unref(UnsafeMutableRawPointer(connection))
            return false
        case .isAbsent: return false
        case .isSilent: return true
        }
    }

    /// `true` if a service (logind) reports sleep. Without this service, an agent detects a sleep by comparing clocks.
    package static var hearsOfSleep: Bool { SystemBus.hasOwner("org.freedesktop.login1") }

    /// `true` if the user chose the power-saver profile. The value is queried from the service, because ``current`` may not contain
    /// the latest change yet.
    package static var isPowerSaved: Bool { SystemBus.powerProfile() == "power-saver" }

    /// Ends the watch.
    package func stop() {
        loop.perform { [desk] in desk.stop() }
    }
}

/// The latest conditions, which several threads can read and write.
private final class LatestConditions: @unchecked Sendable {  // because the lock guards the only variable
    private let lock = NSLock()
    private var stored: DesktopConditions

    init(_ value: DesktopConditions) {
        stored = value
    }

    var value: DesktopConditions {
        get { lock.withLock { stored } }
        set { lock.withLock { stored = newValue } }
    }
}
