// This file declares the port of conditions: the state of the desktop's network and power, as far as it is known.

/// The current values of the conditions that requests can require.
package struct DesktopConditions: Sendable, Equatable, Codable {
    /// `true` if the machine has a route to other machines, not only the loopback route. Even then, a single host may not
    /// respond.
    package var isNetworkAvailable: Bool
    /// `true` if the connection costs money per byte. `false` if the cost is unknown.
    package var isNetworkMetered: Bool
    /// `true` if the user marked the connection as metered. Apple calls such a connection a constrained network (Low Data Mode).
    package var isNetworkConstrained: Bool
    /// `true` if the connection is a mobile-phone network.
    package var isNetworkCellular: Bool
    /// `true` if the connection is Wi-Fi.
    package var isNetworkWiFi: Bool
    /// `true` if the machine is on mains power or has no battery.
    package var isOnExternalPower: Bool
    /// `true` if the user chose the power-saver profile. `false` if no service of the desktop provides profiles.
    package var isLowPowerMode: Bool
    /// The conditions that this desktop reports. `nil` if the desktop was not examined.
    package var knowledge: Knowledge?

    /// The conditions that this desktop reports. All other conditions have assumed values.
    package struct Knowledge: Sendable, Equatable, Codable {
        package var network: Bool
        package var metered: Bool
        package var power: Bool

        package init(network: Bool, metered: Bool, power: Bool) {
            (self.network, self.metered, self.power) = (network, metered, power)
        }
    }

    package init(
        isNetworkAvailable: Bool, isNetworkMetered: Bool, isNetworkConstrained: Bool = false,
        isNetworkCellular: Bool = false, isNetworkWiFi: Bool = false, isOnExternalPower: Bool, isLowPowerMode: Bool = false,
        knowledge: Knowledge? = nil
    ) {
        self.knowledge = knowledge
        self.isNetworkConstrained = isNetworkConstrained
        self.isNetworkCellular = isNetworkCellular
        self.isNetworkAvailable = isNetworkAvailable
        self.isNetworkMetered = isNetworkMetered
        self.isNetworkWiFi = isNetworkWiFi
        self.isOnExternalPower = isOnExternalPower
        self.isLowPowerMode = isLowPowerMode
    }

    /// `true` if the machine runs on battery in the power-saver profile.
    package var isSavingPower: Bool { isLowPowerMode && !isOnExternalPower }

    /// Reads stored conditions. Fields that an earlier version did not write have default values.
    package init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        isNetworkAvailable = try values.decode(Bool.self, forKey: .isNetworkAvailable)
        isNetworkMetered = try values.decode(Bool.self, forKey: .isNetworkMetered)
        isNetworkConstrained = try values.decodeIfPresent(Bool.self, forKey: .isNetworkConstrained) ?? false
        isNetworkCellular = try values.decodeIfPresent(Bool.self, forKey: .isNetworkCellular) ?? false
        isNetworkWiFi = try values.decodeIfPresent(Bool.self, forKey: .isNetworkWiFi) ?? false
        isOnExternalPower = try values.decode(Bool.self, forKey: .isOnExternalPower)
        isLowPowerMode = try values.decodeIfPresent(Bool.self, forKey: .isLowPowerMode) ?? false
        knowledge = try values.decodeIfPresent(Knowledge.self, forKey: .knowledge)
    }
}

/// A report about the desktop's conditions. A helper program makes the report and passes it to another process as JSON.
package struct ConditionsReport: Sendable, Equatable, Codable {
    package var conditions: DesktopConditions
    /// `true` if a service reports when the machine wakes. Without such a service, the agent compares two clocks to detect that
    /// the machine woke.
    package var hearsOfSleep: Bool
    /// The state of the machine, which decides whether the machine can be woken. `nil` if no service manages sleep, or if the
    /// report is from an earlier version.
    package var machine: MachineState?
    /// `true` if the system bus exists but does not respond. The state of the services on the bus is then unknown. `nil` if the
    /// report is from an earlier version.
    package var isSystemBusSilent: Bool?

    package init(
        conditions: DesktopConditions, hearsOfSleep: Bool, machine: MachineState? = nil, isSystemBusSilent: Bool = false
    ) {
        (self.conditions, self.hearsOfSleep, self.machine) = (conditions, hearsOfSleep, machine)
        self.isSystemBusSilent = isSystemBusSilent
    }
}

/// A source of the desktop's conditions. The source calls the handler that its initializer received: once at the start, and after
/// each change. The handler runs on a separate thread.
package protocol ConditionsSource: Sendable {
    var current: DesktopConditions { get }
}
