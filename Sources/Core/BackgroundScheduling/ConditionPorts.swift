// The port of conditions: what the desktop's network and power are like, as far as it is known.

/// A snapshot of the conditions that requests can ask for.
package struct DesktopConditions: Sendable, Equatable, Codable {
    /// Some network beyond this machine can be tried: any non-loopback route. Never a promise that a host answers.
    package var isNetworkAvailable: Bool
    /// The connection costs money per byte, as far as the desktop knows; unknown counts as no.
    package var isNetworkMetered: Bool
    /// The person marked the connection as metered: what Apple calls a constrained network (Low Data Mode).
    package var isNetworkConstrained: Bool
    /// What connects is a mobile-phone network.
    package var isNetworkCellular: Bool
    /// What connects is Wi-Fi.
    package var isNetworkWiFi: Bool
    /// On mains, or on a machine without a battery.
    package var isOnExternalPower: Bool
    /// The person chose the power-saver profile; no such service counts as no.
    package var isLowPowerMode: Bool
    /// What of it somebody says; `nil`: that was not looked at.
    package var knowledge: Knowledge?

    /// What this desktop tells. The rest is taken for granted.
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

    /// There is a battery to spare, and the person asked to spare it.
    package var isSavingPower: Bool { isLowPowerMode && !isOnExternalPower }

    /// Written by an earlier version it lacks what was added since.
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

/// What a desktop tells of its conditions, as a program that looked says: it crosses to another process as JSON.
package struct ConditionsReport: Sendable, Equatable, Codable {
    package var conditions: DesktopConditions
    /// A service tells when the machine wakes. Without it the clocks do.
    package var hearsOfSleep: Bool
    /// What a wake depends on; `nil`: no service manages sleep, or a program of an earlier version looked.
    package var machine: MachineLook?
    /// The system bus is there, and does not answer: what its services would say is not known. `nil`: a program of an earlier version looked.
    package var isSystemBusSilent: Bool?

    package init(
        conditions: DesktopConditions, hearsOfSleep: Bool, machine: MachineLook? = nil, isSystemBusSilent: Bool = false
    ) {
        (self.conditions, self.hearsOfSleep, self.machine) = (conditions, hearsOfSleep, machine)
        self.isSystemBusSilent = isSystemBusSilent
    }
}

/// Where conditions come from. The handler given to an implementation's initialiser is called on the source's
/// own thread each time something changed, and once at the start.
package protocol ConditionsSource: Sendable {
    var current: DesktopConditions { get }
}
