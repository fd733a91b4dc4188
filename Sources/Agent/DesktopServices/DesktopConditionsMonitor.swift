import BackgroundScheduling
import CLibnotify
import Foundation

/// An event of the machine that the scheduler needs.
package enum DesktopSignal: Sendable, Equatable {
    /// The machine is about to sleep.
    case falling
    /// The machine woke from sleep.
    case resumed
    /// The system's time zone changed. The watch of the time zone's file and the system service may both report the same change.
    case timeZoneChanged
}

/// Watches the network, the power, the sleep and the time zone of this machine without polling.
///
/// GIO's monitor reports the network, with NetworkManager if it runs. UPower reports the power. If UPower does not run, the
/// kernel reports the power. logind reports sleep. Each service and the system bus may be missing. If a service does not respond,
/// the kernel's state is used until the service responds.
package final class DesktopConditionsMonitor: ConditionsSource {
    private let loop: GLibLoop
    private let latest: LatestConditions
    private let reader: ConditionsReader

    /// Starts to watch the conditions of this machine.
    ///
    /// - Parameters:
    ///   - powerSupplies: the kernel's folder of power supplies.
    ///   - localTime: the path of the link to the system's time zone file.
    ///   - handler: called on the loop's thread with the conditions. The first call follows when the services have responded, or
    ///     after 3 s. Other calls follow after each change, and also after a change to another network with the same properties.
    ///   - onSignal: called on the loop's thread for each event.
    package init(
        loop: GLibLoop, powerSupplies: String = "/sys/class/power_supply", localTime: String = "/etc/localtime",
        handler: @escaping @Sendable (DesktopConditions) -> Void,
        onSignal: @escaping @Sendable (DesktopSignal) -> Void = { _ in }
    ) {
        self.loop = loop
        // The first value comes from the network interfaces and the kernel. So the value is available before the thread has
        // queried a service.
        let latest = LatestConditions(
            DesktopConditions(
                isNetworkAvailable: NetworkInterface.canReachOthers(NetworkInterface.current()),
                isNetworkMetered: false,
                isOnExternalPower: PowerSupply.isOnExternalPower(PowerSupply.read(from: powerSupplies))))
        self.latest = latest
        let reader = ConditionsReader(
            loop: loop, powerSupplies: powerSupplies, localTime: localTime,
            handler: { conditions in
                latest.value = conditions
                handler(conditions)
            },
            onSignal: onSignal)
        self.reader = reader
        loop.perform { reader.start() }
    }

    deinit {
        stop()
    }

    /// The last observed conditions. Any thread can read this property.
    package var current: DesktopConditions { latest.value }

    /// Reads the conditions again. A new read is necessary if no service reports changes of the charger, for example on a machine
    /// without UPower. The handler is called only if a condition has changed.
    package func refresh() {
        loop.perform { [reader] in reader.publishChanges() }
    }

    /// `true` if the system bus exists but does not respond. To determine this, the property connects to the bus and waits for a
    /// response.
    package static var isSystemBusSilent: Bool {
        switch SystemBusConnection.open() {
        case .open(let connection):
            g_object_unref(UnsafeMutableRawPointer(connection))
            return false
        case .isAbsent: return false
        case .isSilent: return true
        }
    }

    /// `true` if a service (logind) reports sleep. Without this service, an agent detects sleep by a comparison of two clocks.
    package static var hearsOfSleep: Bool { SystemBus.hasOwner("org.freedesktop.login1") }

    /// `true` if the user chose the power-saver profile. The service is queried, because ``current`` may not contain the latest
    /// change yet.
    package static var isPowerSaved: Bool { SystemBus.powerProfile() == "power-saver" }

    /// Stops watching the conditions of this machine.
    package func stop() {
        loop.perform { [reader] in reader.stop() }
    }
}

/// The latest conditions. Several threads can read and write these conditions.
private final class LatestConditions: @unchecked Sendable {  // This is safe because the lock guards the only variable.
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
