import Foundation

/// One entry of the kernel's power supply class.
struct PowerSupply: Sendable, Equatable {
    /// "Mains", "USB", "Wireless", "Battery", "UPS".
    var type: String
    /// "Device" for the battery of a mouse or headset; else "System", or not told.
    var scope: String?
    /// Whether the line delivers: 0 no, 1 or 2 yes. Batteries have none.
    var online: Int?
    /// Of a battery: "Charging", "Discharging", "Full", "Not charging", "Unknown".
    var status: String?
    /// Of a battery: how full it is, in hundredths.
    var capacity: Double?

    init(type: String, scope: String?, online: Int?, status: String?, capacity: Double? = nil) {
        (self.type, self.scope, self.online, self.status, self.capacity) = (type, scope, online, status, capacity)
    }

    /// Of the fullest battery of the machine's own: it runs on one at a time.
    static func batteryPercent(_ supplies: [PowerSupply]) -> Double? {
        supplies.filter { $0.isBattery && $0.scope != "Device" }.compactMap(\.capacity).max()
    }

    /// Whether the machine draws from outside. A machine without a battery of its own always does.
    static func isOnExternalPower(_ supplies: [PowerSupply]) -> Bool {
        let own = supplies.filter { $0.scope != "Device" }
        let batteries = own.filter(\.isBattery)
        guard !batteries.isEmpty else { return true }
        let lines = own.filter { !$0.isBattery && $0.online != nil }
        if lines.contains(where: { ($0.online ?? 0) > 0 }) { return true }
        guard lines.isEmpty else { return false }
        // Some boards list only the battery: then all that is known is whether it drains.
        return !batteries.contains { $0.status == "Discharging" }
    }

    private var isBattery: Bool { type == "Battery" || type == "UPS" }

    /// Reads the class directory, usually /sys/class/power_supply. What cannot be read counts as not there.
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
