import BackgroundNotices
import Foundation
import Testing

@testable import DesktopBus
@testable import DesktopServices

@Suite struct PowerRules {
    let mains = PowerSupply(type: "Mains", scope: nil, online: 1, status: nil)
    let unplugged = PowerSupply(type: "Mains", scope: nil, online: 0, status: nil)
    let draining = PowerSupply(type: "Battery", scope: "System", online: nil, status: "Discharging")
    let full = PowerSupply(type: "Battery", scope: nil, online: nil, status: "Full")
    let mouse = PowerSupply(type: "Battery", scope: "Device", online: nil, status: "Discharging")
    let typeC = PowerSupply(type: "USB", scope: nil, online: 1, status: nil)

    @Test func `a machine without a battery is on external power`() {
        #expect(PowerSupply.isOnExternalPower([]))
        #expect(PowerSupply.isOnExternalPower([unplugged]))
        #expect(PowerSupply.isOnExternalPower([mouse]))
    }

    @Test func `a laptop is on external power if any supply is online`() {
        #expect(PowerSupply.isOnExternalPower([mains, full]))
        #expect(PowerSupply.isOnExternalPower([unplugged, typeC, draining]))
        #expect(!PowerSupply.isOnExternalPower([unplugged, draining]))
        // The machine was just unplugged, so the battery may still report "Full".
        #expect(!PowerSupply.isOnExternalPower([unplugged, full]))
    }

    @Test func `the battery alone decides if no other supply is listed`() {
        #expect(PowerSupply.isOnExternalPower([full]))
        #expect(!PowerSupply.isOnExternalPower([draining]))
    }

    @Test func `power supplies are read from the folder of the kernel`() throws {
        let root = try TemporaryFolder.make()
        defer { try? FileManager.default.removeItem(at: root) }
        try KernelSupplies.write(["AC": ["type": "Mains", "online": "1"]], to: root)
        try KernelSupplies.write(["BAT0": ["type": "Battery", "status": "Full"], "odd": [:]], to: root)
        #expect(PowerSupply.read(from: root.path) == [mains, full])
        #expect(PowerSupply.read(from: root.path + "/absent") == [])
    }
}

enum KernelSupplies {
    static func write(_ supplies: [String: [String: String]], to root: URL) throws {
        for (name, attributes) in supplies {
            let folder = root.appendingPathComponent(name)
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            for (key, value) in attributes { try Data("\(value)\n".utf8).write(to: folder.appendingPathComponent(key)) }
        }
    }
}

@Suite struct NetworkRules {
    let wire = NetworkInterface(isLoopback: false, isUp: true, isRunning: true, isLinkLocal: false)

    @Test func `the network is known to NetworkManager, and to all monitors but the base class`() {
        let report = NetworkManagerReport(state: 70)
        #expect(NetworkManagerReport.isNetworkKnown(report, monitor: "GNetworkMonitorBase"))
        #expect(NetworkManagerReport.isNetworkKnown(nil, monitor: "GNetworkMonitorNetlink"))
        #expect(!NetworkManagerReport.isNetworkKnown(nil, monitor: "GNetworkMonitorBase"))
        #expect(!NetworkManagerReport.isNetworkKnown(NetworkManagerReport(), monitor: nil))
    }

    @Test func `metered is known if NetworkManager manages the network, or from the portal`() {
        func isKnown(_ metered: UInt32?, _ isAvailable: Bool = true) -> Bool {
            NetworkManagerReport.isMeteredKnown(
                NetworkManagerReport(metered: metered), monitor: "GNetworkMonitorNM", isNetworkAvailable: isAvailable)
        }
        for metered: UInt32 in 1...4 { #expect(isKnown(metered)) }
        #expect(!isKnown(0) && isKnown(0, false) && !isKnown(nil))
        for (monitor, isKnown) in [("GNetworkMonitorPortal", true), ("GNetworkMonitorNetlink", false)] {
            #expect(NetworkManagerReport.isMeteredKnown(nil, monitor: monitor, isNetworkAvailable: true) == isKnown)
        }
    }

    @Test func `an address beyond this machine counts`() {
        #expect(NetworkInterface.canReachOthers([wire]))
        #expect(!NetworkInterface.canReachOthers([]))
        for change: (inout NetworkInterface) -> Void in [
            { $0.isLoopback = true }, { $0.isUp = false }, { $0.isRunning = false }, { $0.isLinkLocal = true },
        ] {
            var other = wire
            change(&other)
            #expect(!NetworkInterface.canReachOthers([other]))
        }
    }

    /// A network bridge for containers exists only while the containers are running. The address of a network bridge for
    /// containers must not identify a network.
    @Test func `the addresses of hardware interfaces distinguish networks`() throws {
        let folder = try TemporaryFolder.make()
        try FileManager.default.createDirectory(
            at: folder.appendingPathComponent("eth0/device"), withIntermediateDirectories: true)
        func interface(_ name: String, _ address: String) -> NetworkInterface {
            var interface = wire
            (interface.name, interface.address) = (name, address)
            return interface
        }
        func addresses(_ interfaces: NetworkInterface...) -> Set<String> {
            NetworkInterface.addresses(interfaces, classFolder: folder.path)
        }
        let (wired, bridge) = (interface("eth0", "10.0.0.7"), interface("docker0", "172.17.0.1"))
        #expect(addresses(wired, bridge) == addresses(wired))
        #expect(addresses(interface("eth0", "192.168.1.7")) != addresses(wired))
        #expect(addresses(bridge) == ["docker0 172.17.0.1"], "better than nothing")
    }

    @Test func `the loopback interface of this machine is found`() {
        #expect(NetworkInterface.current().contains { $0.isLoopback })
    }
}

@Suite struct AddressRules {
    func choose(_ known: String?..., runtime: String? = nil, sockets: Set<String> = []) -> [String] {
        SessionBusAddress.candidates(known: known, runtimeDirectory: runtime) { sockets.contains($0) }
    }

    @Test func `candidates are the given addresses first and then the socket of the runtime folder`() {
        #expect(choose("unix:path=/a", "unix:path=/b", "unix:path=/a") == ["unix:path=/a", "unix:path=/b"])
        #expect(
            choose(nil, "unix:path=/b", runtime: "/run/u", sockets: ["/run/u/bus"]) == ["unix:path=/b", "unix:path=/run/u/bus"])
        #expect(choose("", "", runtime: "/run/u", sockets: ["/run/u/bus"]) == ["unix:path=/run/u/bus"])
        #expect(choose(nil, runtime: "/run/a b", sockets: ["/run/a b/bus"]) == ["unix:path=/run/a%20b/bus"])
        #expect(choose(nil, runtime: "/run/u") == [])
        #expect(choose(nil, runtime: "relative", sockets: ["relative/bus"]) == [])
    }

    @Test func `autolaunch is never an address`() {
        #expect(choose("autolaunch:") == [])
        #expect(choose("autolaunch:scope=x;unix:path=/a") == ["unix:path=/a"])
        #expect(choose("autolaunch:", "unix:path=/b") == ["unix:path=/b"])
    }
}

@Suite struct TextRules {
    @Test func `text is escaped only for servers that read markup`() {
        #expect(NoticeText.body("<b>a & b</b>", isMarkup: true) == "&lt;b&gt;a &amp; b&lt;/b&gt;")
        #expect(NoticeText.body("<b>a & b</b>", isMarkup: false) == "<b>a & b</b>")
        #expect(NoticeText.body("a\u{0}b\u{1B}c\nd\te🌩", isMarkup: true) == "abc\nd\te🌩")
    }

    @Test func `a title is never empty`() {
        #expect(NoticeText.title("<i>", fallback: "App") == "<i>")
        #expect(NoticeText.title("", fallback: "App") == "App")
        #expect(NoticeText.title("\u{7}", fallback: "") == " ")
    }

    @Test func `a long text is cut between characters`() {
        let family = "👨‍👩‍👧‍👦"
        let cut = NoticeText.body(String(repeating: family, count: 10_000), isMarkup: true)
        let isWhole = cut.dropLast().allSatisfy { String($0) == family }
        #expect(cut.hasSuffix("…") && isWhole && cut.count > 2_000)
        #expect(NoticeText.body(String(repeating: "<", count: 1_000_000), isMarkup: true).utf8.count < 20_000)
        #expect(NoticeText.title(String(repeating: "a", count: 401), fallback: "") == String(repeating: "a", count: 400) + "…")
        // The text is one character that consists of a million scalars.
        let accents = "a" + String(repeating: "\u{301}", count: 1_000_000)
        #expect(NoticeText.body(accents, isMarkup: false).unicodeScalars.count <= 4 * NoticeText.bodyLimit + 1)
    }

    @Test func `a text with direction marks does not change the direction of later text`() {
        #expect(NoticeText.title("\u{202E}evil", fallback: "") == "\u{202E}evil\u{202C}")
        #expect(NoticeText.title("\u{2067}a\u{202A}b", fallback: "") == "\u{2067}a\u{202A}b\u{202C}\u{2069}")
        #expect(NoticeText.title("\u{202B}a\u{202C}", fallback: "") == "\u{202B}a\u{202C}", "the text already ends its direction")
    }
}

@Suite struct FailureRules {
    @Test(arguments: ["ServiceUnknown", "NameHasNoOwner", "NoReply", "Spawn.ChildExited", "TimedOut"])
    func `bus errors of a missing server are reported as no server`(kind: String) {
        #expect(PresenterFailure(remoteError: "org.freedesktop.DBus.Error.\(kind)", text: "t") == .noServer("t"))
    }

    @Test func `a lost bus and a refusal by the server are distinct failures`() {
        #expect(
            PresenterFailure(remoteError: "org.freedesktop.DBus.Error.Disconnected", text: "t") == .noSessionBus("t"))
        #expect(
            PresenterFailure(remoteError: "org.freedesktop.DBus.Error.InvalidArgs", text: "t")
                == .refused("org.freedesktop.DBus.Error.InvalidArgs: t"))
        #expect(
            PresenterFailure(remoteError: "org.freedesktop.Notifications.Error.ExcessNotificationGeneration", text: "t")
                == .refused("org.freedesktop.Notifications.Error.ExcessNotificationGeneration: t"))
    }

    @Test func `addresses of the same bus are recognized in several spellings`() {
        #expect(SessionBusAddress.isSame("unix:path=/run/bus,guid=aa", "unix:path=/run/bus", guid: nil))
        #expect(SessionBusAddress.isSame("unix:path=/run/bus,guid=aa", "unix:path=/run/bus,guid=bb", guid: nil))
        #expect(SessionBusAddress.isSame("unix:abstract=/tmp/x,guid=aa", "unix:path=/run/bus", guid: "aa"))
        #expect(!SessionBusAddress.isSame("unix:path=/run/other", "unix:path=/run/bus", guid: "aa"))
    }
}
