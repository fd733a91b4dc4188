import BackgroundLedger
import BackgroundScheduling
import Foundation
import Testing

extension EndToEnd {
    /// Tests with a real agent and a simulated logind. Some tests give the agent the capability to wake the machine, and other
    /// tests do not.
    @Suite struct WakingTheMachine {
        private let system: SystemServices
        private let app: ProvingHome

        init() throws {
            system = try SystemServices()
            app = try ProvingHome(system: system)
            // The test itself starts the agent, with selected capabilities.
            app.home.environment["PROVING_GROUND_NO_AGENT"] = "1"
        }

        /// Root gives a process all capabilities of its bounding set. The test therefore restricts this set.
        private func startAgent(mayWake: Bool, in home: Home) throws -> Child {
            _ = try Ledger(home.directories)
            let log = open(home.directories.agentLog.path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
            defer { close(log) }
            let sets =
                mayWake
                ? ["--inh-caps", "-all,+wake_alarm", "--ambient-caps", "-all,+wake_alarm", "--bounding-set", "-all,+wake_alarm"]
                : ["--inh-caps", "-wake_alarm", "--ambient-caps", "-wake_alarm", "--bounding-set", "-wake_alarm"]
            return try Child(
                "setpriv", sets + [Home.product("background-agent"), "--app", home.directories.appIdentifier],
                environment: home.environment, output: log)
        }

        private func alarm(_ what: String, _ isIt: @escaping (AlarmReport) -> Bool) throws {
            try app.home.wait(what) { try $0.fact(.alarm).flatMap { isIt($0) ? true : nil } }
        }

        /// Submits a refresh that wakes the machine after `seconds`. Then starts an agent, which sets the alarm.
        private func scheduleWake(after seconds: Int) throws -> Child {
            try app.run("refresh", "\(seconds)", "wake")
            let agent = try startAgent(mayWake: true, in: app.home)
            try system.waitUntilAsked("Inhibit")
            return agent
        }

        /// Announces to the agent that the machine is going to sleep, like logind.
        private func beginSleep(lidIsClosed: Bool) throws {
            try system.set(.login, "LidClosed", "\(lidIsClosed)")
            try system.set(.login, "PreparingForSleep", "true")
            try system.prepareForSleep(true)
            try system.waitUntilAsked("Released")
        }

        /// - Parameter seconds: The seconds until the alarm.
        private func wake(after seconds: Double = 2) throws {
            // The seconds until the alarm are counted from this line, because the start of the services took some time.
            try Ledger(app.home.directories).write { transaction in
                let begin = Date(timeIntervalSinceNow: seconds)
                let request = RequestRecord(
                    identifier: "refresh", kind: .appRefresh, earliestBegin: begin, wakesSystem: true, submittedAt: Date())
                try transaction.save(request)
            }
            // The agent runs before logind has completed the sleep.
            try system.waitUntilAsked("Refused")
            #expect(app.lines.isEmpty, "work waits for the lock")
            try system.set(.login, "PreparingForSleep", "false")
            try system.prepareForSleep(false)
            try app.waitForLaunch("its end") { $0.outcome == .completed }
        }

        /// Returns the timers of a process, as the kernel lists them.
        private func alarms(of pid: Int32) throws -> [(clock: Int, isArmed: Bool)] {
            let folder = "/proc/\(pid)/fdinfo"
            return try FileManager.default.contentsOfDirectory(atPath: folder).compactMap { name in
                guard let text = try? String(contentsOfFile: "\(folder)/\(name)", encoding: .utf8) else { return nil }
                let lines = text.split(separator: "\n")
                guard let clock = lines.first(where: { $0.hasPrefix("clockid: ") }) else { return nil }
                let value = lines.first { $0.hasPrefix("it_value: ") }
                return (Int(clock.dropFirst(9)) ?? -1, value.map { $0 != "it_value: (0, 0)" } ?? false)
            }
        }

        @Test func `the kernel alarm is set if the agent has the wake alarm capability`() throws {
            let agent = try scheduleWake(after: 3_600)
            defer { agent.end() }
            let status = try String(contentsOfFile: "/proc/\(agent.pid)/status", encoding: .utf8)
            #expect(status.contains("CapEff:\t0000000800000000"), "the agent has no capability except CAP_WAKE_ALARM")
            #expect(try alarms(of: agent.pid).contains { $0.clock == 9 && $0.isArmed })
            #expect(try app.condition("systemWake")["met"] as? Bool == true)
            let row = try app.rows("doctor").first { $0["check"] as? String == "wake" }
            #expect(row?["status"] as? String == "ok")
        }

        @Test func `a missing wake alarm capability is reported by why, doctor and the log`() throws {
            try app.run("refresh", "3600", "wake")
            let agent = try startAgent(mayWake: false, in: app.home)
            defer { agent.end() }
            try alarm("the refusal") { $0.obstacle != nil }
            let words = "the agent lacks the capability CAP_WAKE_ALARM"
            let condition = try app.condition("systemWake")
            #expect(condition["met"] as? Bool == false)
            #expect((condition["detail"] as? String)?.contains(words) == true)
            #expect((condition["since"] as? String)?.isEmpty == false)
            let rows = try app.rows("doctor").filter { $0["check"] as? String == "wake" }
            #expect(rows.count == 1)
            #expect(rows.first?["status"] as? String == "warning")
            let message = rows.first?["message"] as? String ?? ""
            #expect(message.contains(words) && message.contains("systemd 254"), "\(message)")
            #expect(app.home.log.components(separatedBy: "cannot wake the machine").count == 2, "said once")
            #expect(try !alarms(of: agent.pid).contains { $0.clock == 9 })
        }

        @Test func `a woken machine runs the work and suspends again once`() throws {
            let agent = try scheduleWake(after: 3_600)
            defer { agent.end() }
            try beginSleep(lidIsClosed: true)
            try wake()
            try system.waitUntilAsked("Suspend")
            #expect(system.asked == ["Inhibit", "Released", "Inhibit", "Refused", "Inhibit", "Released", "Suspend"])
            // The machine sleeps, and the user wakes it.
            try system.prepareForSleep(true)
            try system.set(.login, "LidClosed", "false")
            try system.prepareForSleep(false)
            try app.run("refresh", "0", "wake")
            try app.home.wait("another launch") {
                try $0.history(limit: 9).filter { $0.outcome == .completed }.count == 2 ? true : nil
            }
            #expect(system.asked.filter { $0 == "Suspend" }.count == 1)
            #expect(try app.home.wait("the instant") { try $0.fact(.servedWake) } < Date())
        }

        @Test func `the machine stays awake if the lid was opened`() throws {
            let agent = try scheduleWake(after: 3_600)
            defer { agent.end() }
            try beginSleep(lidIsClosed: true)
            try system.set(.login, "LidClosed", "false")
            try wake()
            #expect(FileWatch.wait(app.home.directories.agentLog.path) { $0.contains("the machine stays awake") } != nil)
            #expect(!system.asked.contains("Suspend"))
        }

        /// The lid was never closed. The user locked the screen and then unlocked it.
        @Test func `the machine stays awake if the screen was unlocked`() throws {
            let session = "org.freedesktop.login1.Session"
            try system.set(.login, at: "/session/auto", session, "LockedHint", "true")
            let agent = try scheduleWake(after: 3_600)
            defer { agent.end() }
            try beginSleep(lidIsClosed: false)
            try system.set(.login, at: "/session/auto", session, "LockedHint", "false")
            try wake()
            #expect(FileWatch.wait(app.home.directories.agentLog.path) { $0.contains("the machine stays awake") } != nil)
            #expect(!system.asked.contains("Suspend"))
        }

        private func runOnBattery(_ percent: Double) throws {
            let device = "org.freedesktop.UPower.Device"
            try system.set(.power, at: "/devices/DisplayDevice", device, "IsPresent", "true")
            try system.set(.power, at: "/devices/DisplayDevice", device, "Percentage", "\(percent)")
            try system.set(.power, "OnBattery", "true")
        }

        @Test func `no alarm is set on low battery`() throws {
            try runOnBattery(20)
            try app.run("refresh", "3600", "wake")
            let agent = try startAgent(mayWake: true, in: app.home)
            defer { agent.end() }
            try alarm("the battery") { $0.obstacle == .lowBattery }
            #expect(try !alarms(of: agent.pid).contains { $0.clock == 9 && $0.isArmed })
            #expect(!system.asked.contains("Inhibit"))
            let row = try app.rows("doctor").first { $0["check"] as? String == "wake" }
            #expect((row?["message"] as? String)?.contains("less than 30 %") == true)
            // A charger is connected.
            try system.set(.power, "OnBattery", "false")
            try system.waitUntilAsked("Inhibit")
            #expect(try alarms(of: agent.pid).contains { $0.clock == 9 && $0.isArmed })
        }

        /// The battery ran low during use. The agent detects the low battery before the machine sleeps.
        @Test func `an alarm is removed before sleep if the battery ran low`() throws {
            try runOnBattery(80)
            let agent = try scheduleWake(after: 3_600)
            defer { agent.end() }
            #expect(try alarms(of: agent.pid).contains { $0.clock == 9 && $0.isArmed })
            let device = "org.freedesktop.UPower.Device"
            try system.set(.power, at: "/devices/DisplayDevice", device, "Percentage", "12.0")
            try beginSleep(lidIsClosed: true)
            #expect(try !alarms(of: agent.pid).contains { $0.clock == 9 && $0.isArmed })
        }

        @Test func `schedule --wake is stored, and why reports what is missing`() throws {
            let home = try Home()
            home.environment["STORMY_NO_AGENT"] = "1"
            let said = try home.stormy("schedule", "--wake")
            #expect(said.status == 0 && said.output.contains("is woken from sleep for the check"))
            #expect(try home.status("schedule", "wakesSystem") as? Bool == true)
            #expect(try home.stormy("status").output.contains("wakes the machine"))
            // The schedule keeps the time that was chosen last.
            try home.stormy("schedule", "--at", "11:00")
            #expect(try home.wait("the check") { try $0.request("StormyNoon")?.wakesSystem } == true)
            // The home has no system bus.
            home.environment["DBUS_SYSTEM_BUS_ADDRESS"] = "unix:path=\(home.folder.path)/none"
            let agent = try startAgent(mayWake: true, in: home)
            defer { agent.end() }
            try home.wait("what is missing") { try $0.fact(.alarm)?.obstacle }
            let conditions = try home.rows("why").first?["conditions"] as? [[String: Any]] ?? []
            let wake = try #require(conditions.first { $0["name"] as? String == "systemWake" })
            #expect((wake["detail"] as? String)?.contains("logind") == true, "\(wake)")
            try home.stormy("schedule", "--no-wake")
            #expect(try home.status("schedule", "wakesSystem") as? Bool == false)
        }
    }
}
