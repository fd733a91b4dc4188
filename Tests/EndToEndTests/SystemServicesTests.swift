import BackgroundLedger
import BackgroundScheduling
import FaultyServer
import Foundation
import Testing

extension EndToEnd {
    /// Tests of conditions that the services of a desktop report over the system bus, with a real agent and real app processes.
    @Suite struct SystemServicesOfADesktop {
        private let system: SystemServices
        private let app: ProvingHome

        init() throws {
            system = try SystemServices()
            app = try ProvingHome(system: system)
        }

        private func conditions(_ what: String, _ isIt: @escaping (DesktopConditions) -> Bool) throws {
            try app.home.wait(what) { try $0.fact(.conditions).map { isIt($0.conditions) } == true ? true : nil }
        }

        @Test func `work waits for external power and ends when power is lost`() throws {
            try system.set(.power, "OnBattery", "true")
            try app.run("work", "work.main", "power")
            try conditions("on battery") { !$0.isOnExternalPower }
            let waiting = try app.condition("externalPower")
            #expect(waiting["met"] as? Bool == false)
            #expect(waiting["detail"] as? String == "running on battery")
            #expect((waiting["since"] as? String)?.isEmpty == false)
            try system.set(.power, "OnBattery", "false")
            try app.waitForLine("begin work.main on the main thread")
            try system.set(.power, "OnBattery", "true")
            let launch = try app.waitForLaunch("its end") { $0.outcome != nil }
            #expect(launch.stopReason == .conditionLost)
            #expect(launch.outcome == .expired)
            #expect(launch.detail == "external power was lost")
            #expect(try app.rows("history").count == 1, "no launch began before the conditions were known")
            #expect(launch.woke == WakeCause.power.rawValue)
            #expect(app.lines.last == "expire work.main")
            // The work is not complete. The work begins again when the machine has external power.
            #expect(try app.condition("externalPower")["met"] as? Bool == false)
            try system.set(.power, "OnBattery", "false")
            try app.home.wait("its second launch") { try $0.history(limit: 10).count == 2 ? true : nil }
        }

        /// A package upgrade restarts the service. During the restart, the agent reads the conditions from the kernel, which
        /// lists no power supply in this test.
        @Test func `a restarted power service is queried again`() throws {
            try system.set(.power, "OnBattery", "true")
            try app.run("work", "cycle.1", "power")
            try conditions("on battery") { !$0.isOnExternalPower }
            system.end(.power)
            try app.waitForLaunch("its end") { $0.outcome == .completed }
            try system.start(.power)
            try system.set(.power, "OnBattery", "true")
            try conditions("on battery again") { !$0.isOnExternalPower }
        }

        /// While the bus is frozen, work runs with the values that the kernel reports. When the bus replies again, the agent
        /// reads the values of the services.
        @Test func `work runs while the system bus is frozen, and its values are read later`() throws {
            try system.set(.power, "OnBattery", "true")
            system.freeze()
            try app.run("work", "cycle.1", "network")
            try app.waitForLaunch("its end") { $0.outcome == .completed }
            let rows = try app.rows("doctor")
            #expect(rows.first { $0["check"] as? String == "system-bus" }?["status"] as? String == "warning", "\(rows)")
            system.thaw()
            try conditions("on battery") { !$0.isOnExternalPower }
            #expect(try !app.rows("doctor").contains { $0["check"] as? String == "system-bus" })
        }

        @Test func `work waits for the network and ends when the network is lost`() throws {
            try system.set(.network, "State", "uint32 40")
            try app.run("work", "work.main", "network")
            try conditions("connecting") { !$0.isNetworkAvailable }
            #expect(try app.condition("networkConnectivity")["met"] as? Bool == false)
            try system.set(.network, "State", "uint32 70")
            try app.waitForLine("begin work.main on the main thread")
            try system.set(.network, "State", "uint32 10")
            let launch = try app.waitForLaunch("its end") { $0.outcome != nil }
            #expect(launch.stopReason == .conditionLost)
            #expect(launch.woke == WakeCause.network.rawValue)
        }

        @Test func `a captive portal does not count as a network`() throws {
            try system.set(.network, "Connectivity", "uint32 2")
            try app.run("work", "cycle.1", "network")
            try conditions("behind a portal") { !$0.isNetworkAvailable }
            #expect(app.lines.isEmpty)
            try system.set(.network, "Connectivity", "uint32 4")
            try app.waitForLaunch("its end") { $0.outcome == .completed }
        }

        /// The next network has the same properties, but has no captive portal.
        @Test func `a waiting transfer is retried at once on another network`() async throws {
            let server = try await FaultyServer.start()
            let file = Payload.pattern(100_000)
            server.route("GET", "/disk.img", .status(511))
            let home = try Home()
            for (name, value) in app.home.environment where name.hasPrefix("DBUS_SYSTEM") { home.environment[name] = value }
            let target = home.folder.appendingPathComponent("disk.img")
            #expect(try home.stormy("download", server.url + "/disk.img", "-o", target.path).status == 0)
            try home.wait("the log-in") { try $0.transfers().first { $0.state == .waiting && $0.errorCode == -1010 } }
            // The first report of the services also counts as a change of the network.
            try home.wait("a pause") { try $0.transfers().first { $0.nextAttemptAt.map { $0 > Date() + 300 } == true } }
            server.route("GET", "/disk.img", .file(file))
            try system.set(.network, "PrimaryConnection", "'/org/freedesktop/NetworkManager/ActiveConnection/7'")
            // Without a change of the network, the next attempt would come in a quarter of an hour or later.
            try home.wait("the file") { try $0.transfers().first { $0.state == .completed } }
            #expect(try Data(contentsOf: target) == file.data)
        }

        @Test func `metered networks and Wi-Fi are recognized`() throws {
            try app.run("refresh", "3600")
            try system.set(.network, "Metered", "uint32 3")
            try conditions("metered") { $0.isNetworkMetered && !$0.isNetworkWiFi }
            try system.set(.network, "Metered", "uint32 4")
            try system.set(.network, "PrimaryConnectionType", "'802-11-wireless'")
            try conditions("Wi-Fi") { !$0.isNetworkMetered && $0.isNetworkWiFi }
        }

        @Test func `a refresh waits while the power saver is on`() throws {
            try system.set(.power, "OnBattery", "true")
            try system.set(.profiles, "ActiveProfile", "'power-saver'")
            // The agent must have read the conditions before a request can be launched.
            try app.run("refresh", "3600")
            try conditions("saving power") { $0.isSavingPower }
            try app.run("refresh")
            let waiting = try app.condition("lowPowerMode")
            #expect(waiting["met"] as? Bool == false)
            #expect(waiting["detail"] as? String == "the power-saver profile is on")
            #expect(app.lines.isEmpty)
            try system.set(.profiles, "ActiveProfile", "'balanced'")
            #expect(try app.waitForLaunch("its end") { $0.outcome == .completed }.woke == WakeCause.saving.rawValue)
        }

        @Test func `a refresh after sleep waits for the network`() throws {
            try app.run("refresh", "3600")
            try conditions("connected") { $0.isNetworkAvailable }
            // Before a laptop sleeps, it disconnects from the network.
            try system.prepareForSleep(true)
            try system.set(.network, "State", "uint32 10")
            try conditions("asleep") { !$0.isNetworkAvailable }
            try system.prepareForSleep(false)
            try app.home.wait("the machine woke") { try $0.fact(.conditions)?.resumedAt }
            try app.run("refresh")
            #expect(try app.condition("networkAfterSleep")["met"] as? Bool == false)
            #expect(app.lines.isEmpty)
            try system.set(.network, "State", "uint32 70")
            #expect(try app.waitForLaunch("its end") { $0.outcome == .completed }.kind == .appRefresh)
        }

        /// The agent sees a private `/etc`. The test replaces the file `localtime` in this folder, as the time service does.
        @Test(.enabled(if: Namespaces.areAllowed)) func `a new time zone moves the daily check`() throws {
            let home = try Home()
            home.environment.merge(system.environment) { $1 }
            home.environment["STORMY_NO_AGENT"] = "1"
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            try home.stormy("schedule", "--exact")
            let berlin = try home.wait("noon") { try $0.request("StormyNoon")?.occurrence }
            let etc = home.folder.appendingPathComponent("etc")
            // Some files of /etc cannot be read by every user.
            _ = try Child.run("cp", ["-r", "--no-preserve=ownership", "/etc", etc.path], environment: home.environment)
            let link = etc.appendingPathComponent("localtime").path
            func set(_ zone: String) throws {
                try FileManager.default.createSymbolicLink(
                    atPath: link + ".new", withDestinationPath: "/usr/share/zoneinfo/\(zone)")
                #expect(rename(link + ".new", link) == 0)
            }
            try set("Europe/Berlin")
            home.environment["TZ"] = nil
            let script = "mount --bind '\(etc.path)' /etc && exec '\(Home.product("background-agent"))' --app stormy"
            let agent = try Child("unshare", Namespaces.withOwnMounts(script), environment: home.environment)
            defer { agent.end() }
            try home.wait("the agent") { try $0.fact(.conditions) }
            #expect(try home.wait("noon") { try $0.request("StormyNoon")?.occurrence } == berlin)
            try set("Asia/Tokyo")
            try system.set(.time, "Timezone", "'Asia/Tokyo'")
            let tokyo = try home.wait("noon elsewhere") { transaction in
                try transaction.request("StormyNoon")?.occurrence.flatMap { $0 == berlin ? nil : $0 }
            }
            let zone = try #require(TimeZone(identifier: "Asia/Tokyo"))
            let parts = Calendar(identifier: .gregorian).dateComponents(in: zone, from: tokyo)
            #expect([parts.hour, parts.minute, parts.second] == [12, 0, 0])
            #expect(tokyo > Date())
        }
    }
}
