import Foundation

/// An address of a network interface.
struct NetworkInterface: Sendable, Equatable {
    var name = ""
    var isLoopback: Bool
    var isUp: Bool
    /// `true` if the interface has a carrier. For example, a bridge whose containers are stopped has no carrier.
    var isRunning: Bool
    var isLinkLocal: Bool
    /// The address of the interface in numeric form.
    var address = ""

    /// Returns `true` if another machine may be reachable. IPv6 link-local addresses are ignored, because every interface with a
    /// plugged cable has such an address.
    static func canReachOthers(_ interfaces: [NetworkInterface]) -> Bool {
        interfaces.contains { !$0.isLoopback && $0.isUp && $0.isRunning && !$0.isLinkLocal }
    }

    private var canReachOthers: Bool { Self.canReachOthers([self]) }

    /// Returns `true` if an interface that belongs to hardware is up.
    static func hasDevice(_ interfaces: [NetworkInterface], classFolder: String = "/sys/class/net") -> Bool {
        interfaces.contains { $0.canReachOthers && access("\(classFolder)/\($0.name)/device", F_OK) == 0 }
    }

    /// Returns the addresses of this machine. The addresses show whether the machine is in another network. A bridge for
    /// containers appears and disappears with its containers. So bridges are ignored if an interface that belongs to hardware is
    /// connected.
    static func addresses(_ interfaces: [NetworkInterface], classFolder: String = "/sys/class/net") -> Set<String> {
        let reaching = interfaces.filter(\.canReachOthers)
        let devices = reaching.filter { hasDevice([$0], classFolder: classFolder) }
        return Set((devices.isEmpty ? reaching : devices).map { "\($0.name) \($0.address)" })
    }

    /// Returns `true` if all connected interfaces are Wi-Fi.
    static func isWiFi(_ interfaces: [NetworkInterface], classFolder: String = "/sys/class/net") -> Bool {
        let names = Set(interfaces.filter(\.canReachOthers).map(\.name))
        return !names.isEmpty && names.allSatisfy { access("\(classFolder)/\($0)/wireless", F_OK) == 0 }
    }

    /// Returns `true` if all connected interfaces belong to mobile-phone networks. The names of such interfaces are `wwan0`, or
    /// `wwp…` if systemd assigns the names.
    static func isCellular(_ interfaces: [NetworkInterface]) -> Bool {
        let names = Set(interfaces.filter(\.canReachOthers).map(\.name))
        return !names.isEmpty && names.allSatisfy { $0.hasPrefix("ww") }
    }

    /// Returns the current IPv4 and IPv6 addresses of the machine.
    static func current() -> [NetworkInterface] {
        var first: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&first) == 0 else { return [] }
        defer { freeifaddrs(first) }
        var interfaces: [NetworkInterface] = []
        var next = first
        while let entry = next?.pointee {
            next = entry.ifa_next
            guard let address = entry.ifa_addr else { continue }
            let family = Int32(address.pointee.sa_family)
            guard family == AF_INET || family == AF_INET6 else { continue }
            func has(_ flag: UInt32) -> Bool { entry.ifa_flags & flag != 0 }
            interfaces.append(
                NetworkInterface(
                    name: String(cString: entry.ifa_name), isLoopback: has(UInt32(IFF_LOOPBACK)), isUp: has(UInt32(IFF_UP)),
                    isRunning: has(UInt32(IFF_RUNNING)),
                    isLinkLocal: family == AF_INET6 && isLinkLocal(address), address: text(of: address, family)))
        }
        return interfaces
    }

    private static func text(of address: UnsafeMutablePointer<sockaddr>, _ family: Int32) -> String {
        var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
        let size = family == AF_INET ? MemoryLayout<sockaddr_in>.size : MemoryLayout<sockaddr_in6>.size
        let status = getnameinfo(address, socklen_t(size), &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST)
        return status == 0 ? String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self) : ""
    }

    /// Returns `true` if the address is in fe80::/10.
    private static func isLinkLocal(_ address: UnsafeMutablePointer<sockaddr>) -> Bool {
        address.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { address in
            withUnsafeBytes(of: address.pointee.sin6_addr) { $0[0] == 0xFE && $0[1] & 0xC0 == 0x80 }
        }
    }
}
