import BackgroundScheduling
import CLibnotify
import Foundation
import Testing

@testable import DesktopServices

extension RealDesktop {
    @Suite struct Conditions {
        let conditions = EventFeed<DesktopConditions>()
        let signals = EventFeed<DesktopSignal>()

        func makeMonitor(systemBus: String, folder: URL) -> DesktopConditionsMonitor {
            g_setenv("DBUS_SYSTEM_BUS_ADDRESS", systemBus, 1)
            return DesktopConditionsMonitor(
                loop: RealDesktop.loop, powerSupplies: folder.appendingPathComponent("supplies").path,
                localTime: folder.appendingPathComponent("localtime").path, handler: conditions.send,
                onSignal: signals.send)
        }

        @Test func `conditions are reported without a system bus`() async throws {
            let folder = try TemporaryFolder.make()
            defer { try? FileManager.default.removeItem(at: folder) }
            let supplies = folder.appendingPathComponent("supplies")
            try KernelSupplies.write(
                ["AC": ["type": "Mains", "online": "1"], "BAT0": ["type": "Battery", "status": "Full"]], to: supplies)
            let monitor = makeMonitor(systemBus: "unix:path=/nonexistent/bus", folder: folder)
            defer { monitor.stop() }
            #expect(monitor.current.isOnExternalPower)
            let first = try await conditions.next()
            #expect(first.isOnExternalPower)
            #expect(first.knowledge == DesktopConditions.Knowledge(network: true, metered: false, power: true))

            try KernelSupplies.write(["AC": ["type": "Mains", "online": "0"]], to: supplies)
            // The second refresh finds no change, so one change is reported.
            monitor.refresh()
            monitor.refresh()
            #expect(try await !conditions.next().isOnExternalPower)
            #expect(!monitor.current.isOnExternalPower)
            try KernelSupplies.write(["AC": ["type": "Mains", "online": "1"]], to: supplies)
            monitor.refresh()
            #expect(try await conditions.next().isOnExternalPower)
        }

        @Test(arguments: [false, true]) func `a replaced time zone link is reported`(byRename: Bool) async throws {
            let folder = try TemporaryFolder.make()
            defer { try? FileManager.default.removeItem(at: folder) }
            let files = FileManager.default
            let link = folder.appendingPathComponent("localtime").path
            try files.createSymbolicLink(atPath: link, withDestinationPath: "/usr/share/zoneinfo/UTC")
            let monitor = makeMonitor(systemBus: "unix:path=/nonexistent/bus", folder: folder)
            defer { monitor.stop() }
            _ = try await conditions.next()
            if byRename {
                let tokyo = "/usr/share/zoneinfo/Asia/Tokyo"
                try files.createSymbolicLink(atPath: link + ".new", withDestinationPath: tokyo)
                #expect(rename(link + ".new", link) == 0)
            } else {
                try files.removeItem(atPath: link)
                try files.createSymbolicLink(atPath: link, withDestinationPath: "/usr/share/zoneinfo/Asia/Tokyo")
            }
            #expect(try await signals.next() == .timeZoneChanged)
        }

        @Test func `power is reported when a frozen system bus continues`() async throws {
            let folder = try TemporaryFolder.make()
            defer { try? FileManager.default.removeItem(at: folder) }
            let bus = try PrivateBus()
            defer { bus.stop() }
            let services = try FakeSystemServices(on: bus, isOnBattery: true)
            bus.freeze()
            let monitor = makeMonitor(systemBus: bus.address, folder: folder)
            defer { monitor.stop() }
            // The kernel lists no power supply, so external power is assumed.
            #expect(try await conditions.next().isOnExternalPower)
            bus.thaw()
            _ = try await conditions.first { !$0.isOnExternalPower }
            withExtendedLifetime(services) {}
        }

        @Test func `power is reported when a frozen service continues`() async throws {
            let folder = try TemporaryFolder.make()
            defer { try? FileManager.default.removeItem(at: folder) }
            let bus = try PrivateBus()
            defer { bus.stop() }
            let services = try FakeSystemServices(on: bus, isOnBattery: true)
            services.freeze()
            let monitor = makeMonitor(systemBus: bus.address, folder: folder)
            defer { monitor.stop() }
            // The kernel lists no power supply, so external power is assumed.
            #expect(try await conditions.next().isOnExternalPower)
            services.thaw()
            _ = try await conditions.first { !$0.isOnExternalPower }
        }

        @Test func `changes of power, sleep and time zone are reported from the system bus`() async throws {
            let folder = try TemporaryFolder.make()
            defer { try? FileManager.default.removeItem(at: folder) }
            let bus = try PrivateBus()
            defer { bus.stop() }
            let services = try FakeSystemServices(on: bus, isOnBattery: true)
            let monitor = makeMonitor(systemBus: bus.address, folder: folder)
            defer { monitor.stop() }
            // The kernel lists no power supply, so this value comes from UPower. After the value has arrived, the monitor also
            // receives the signals of UPower and logind.
            _ = try await conditions.first { !$0.isOnExternalPower }

            services.setOnBattery(false)
            #expect(try await conditions.next().isOnExternalPower)
            services.timeDateChanged("NTP")
            services.prepareForSleep(true)
            services.prepareForSleep(false)
            #expect(try await signals.next() == .falling)
            #expect(try await signals.next() == .resumed)
            services.timeDateChanged("Timezone")
            #expect(try await signals.next() == .timeZoneChanged)

            // By default, GLib would raise SIGTERM when the bus ends. Later tests would then not run.
            bus.stop()
        }
    }
}
