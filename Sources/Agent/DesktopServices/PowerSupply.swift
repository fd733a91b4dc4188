import Foundation

/// An entry of the kernel's power supply class.
struct PowerSupply: Sendable, Equatable {
    /// The type: "Mains", "USB", "Wireless", "Battery", "UPS".
    var type: String
    /// The scope: "Device" for the battery of a mouse or headset. The scope of other supplies is "System" or missing.
    var scope: String?
    /// The state of a power line: 0 supplies no power, and 1 or 2 supplies power. A battery has no such value.
    var online: Int?
    /// The state of a battery: "Charging", "Discharging", "Full", "Not charging", "Unknown".
    var status: String?
    /// The charge of a battery in percent.
    var capacity: Double?

    init(type: String, scope: String?, online: Int?, status: String?, capacity: Double? = nil) {
        (self.type, self.scope, self.online, self.status, self.capacity) = (type, scope, online, status, capacity)
    }

    /// Returns the charge of the machine's battery with the highest charge, because the machine uses one battery at a time.
    static func batteryPercent(_ supplies: [PowerSupply]) -> Double? {
        supplies.filter { $0.isBattery && $0.scope != "Device" }.compactMap(\.capacity).max()
    }

    /// Returns `true` if the machine runs on external power. A machine without a battery always runs on external power.
    static func isOnExternalPower(_ supplies: [PowerSupply]) -> Bool {
        let own = supplies.filter { $0.scope != "Device" }
        let batteries = own.filter(\.isBattery)
        guard !batteries.isEmpty else { return true }
        let lines = own.filter { !$0.isBattery && $0.online != nil }
        if lines.contains(where: { ($0.online ?? 0) > 0 }) { return true }
        guard lines.isEmpty else { return false }
        // Some machines list only the battery. On such a machine, the state of the battery is the only information.
        return !batteries.contains { $0.status == "Discharging" }
    }

    private var isBattery: Bool { type == "Battery" || type == "UPS" }

    /// Reads the folder of power supplies, usually /sys/class/power_supply. Entries that cannot be read are skipped.
    static func read(from root: String) -> [PowerSupply] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: root)) ?? []
        return names.sorted().compactMap { name in
            func value(_ attribute: String) -> String? {
                let path = "\(root)/\(name)/\(attribute)"
                guard let data = FileManager.default.contents(atPath: path) else { return nil }
                let text = String(decoding: data, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
                return text.isEmpty ? nil : text
            }
            guard let type = value("type") else { return nil }
            return PowerSupply(
                type: type, scope: value("scope"), online: value("online").flatMap { Int($0) }, status: value("status"),
                capacity: value("capacity").flatMap { Double($0) })
        }
    }
}
