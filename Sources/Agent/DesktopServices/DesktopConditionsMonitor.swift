import BackgroundScheduling
import CLibnotify
import Foundation

/// What happened to the machine that a scheduler wants to know.
package enum DesktopSignal: Sendable, Equatable {
    /// The machine is about to sleep.
    case falling
    /// The machine woke from sleep.
    case resumed
    /// The system's time zone changed. May be told twice for one change: by the file and by the service.
    case timeZoneChanged
}

/// Watches network, power, sleep and time zone of this machine, without ever polling.
///
/// The network is GIO's monitor (which uses NetworkManager when that runs), power is UPower, else the kernel's own
/// list; sleep is logind. All of them may be absent, and the system bus as a whole. One that stands
/// still is heard as soon as it answers; until then the kernel says what it knows.
package final class DesktopConditionsMonitor: ConditionsSource {
    private let loop: GLibLoop
    private let latest: LatestConditions
    private let desk: ConditionsDesk

    /// Starts watching.
    ///
    /// - Parameters:
    ///   - powerSupplies: the kernel's class directory of power supplies.
    ///   - localTime: the link that names the system's time zone.
    ///   - handler: called on the loop's thread with the conditions at the start (when the services have answered, or 3 s
    ///     have passed), and after each change; also after a change to another network that has the same properties.
    ///   - onSignal: called on the loop's thread.
    package init(
        loop: GLibLoop, powerSupplies: String = "/sys/class/power_supply", localTime: String = "/etc/localtime",
        handler: @escaping @Sendable (DesktopConditions) -> Void,
        onSignal: @escaping @Sendable (DesktopSignal) -> Void = { _ in }
    ) {
        self.loop = loop
        // Readable at once, before the thread has asked anybody: interfaces and the kernel answer directly.
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

    /// The conditions as last seen; from any thread.
    package var current: DesktopConditions { latest.value }

    /// Looks again, where nobody tells of changes: the charger of a machine without UPower. The handler is called only
    /// when something is different.
    package func refresh() {
        loop.perform { [desk] in desk.publishChanges() }
    }

    /// The system bus is there, and does not answer. Asks it, and waits for it.
    package static var isSystemBusSilent: Bool {
        switch SystemBusConnection.open() {
        case .open(let connection):
            g_object_unref(UnsafeMutableRawPointer(connection))
            return false
        case .isAbsent: return false
        case .isSilent: return true
        }
    }

    /// A service tells of sleep. Without it an agent sees by its clocks that the machine slept.
    package static var hearsOfSleep: Bool { SystemBus.hasOwner("org.freedesktop.login1") }

    /// The person chose to save power. Asks, where ``current`` may not have heard of it yet.
    package static var isPowerSaved: Bool { SystemBus.powerProfile() == "power-saver" }

    /// Ends the watching.
    package func stop() {
        loop.perform { [desk] in desk.stop() }
    }
}

/// The one value that crosses threads.
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
