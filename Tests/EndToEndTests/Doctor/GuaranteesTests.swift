import BackgroundLedger
import FaultyServer
import Foundation
import ProcessSupport
import StormyFixtures
import Testing

/// The last row of `doctor --json`, with the capabilities of this desktop.
struct PrintedGuarantees: Decodable {
    struct Guarantee: Decodable {
        let name: String
        let kept: Bool?
        let verdict: String
        let reason: String
        let help: String?
    }

    private struct Row: Decodable {
        let check: String
        let status: String
        let guarantees: [Guarantee]?
    }

    let all: [Guarantee]

    init(_ home: Home, program: String = Home.product("stormy"), _ words: [String] = []) throws {
        let result = try Child.run(program, words + ["doctor", "--json"], environment: home.environment)
        let rows = try JSONDecoder().decode([Row].self, from: Data(result.output.utf8))
        #expect(rows.dropLast().allSatisfy { $0.guarantees == nil })
        let last = try #require(rows.last, "\(result)")
        #expect(last.check == "guarantees" && last.status == "ok")
        all = try #require(last.guarantees)
        #expect(all.count == 8 && all.allSatisfy { $0.kept == ($0.verdict == "unknown" ? nil : $0.verdict == "kept") })
    }

    func verdict(_ name: String) -> String? { all.first { $0.name == name }?.verdict }
}

extension EndToEnd.Doctor {
    /// No work is requested. No user manager and no desktop is running.
    @Test func `an empty home lists the capabilities of this desktop`() throws {
        let home = try Home()
        let printed = try PrintedGuarantees(home)
        for name in ["survivesLogout", "survivesReboot", "survivesForceQuit"] {
            #expect(printed.verdict(name) == "keptFromNextLogin")
        }
        let mayWake = ProcessCapabilities(of: nil)?.has(.wakeAlarm) == true
        #expect(
            printed.verdict("wakesSystem") == (mayWake ? "unknown" : "notKept") && printed.verdict("buttonsAreLive") == "notKept")
        #expect(printed.verdict("networkIsKnown") == "kept" && printed.verdict("powerIsKnown") == "kept")
        let lines = try home.stormy("doctor", "--all").output.split(separator: "\n")
        let start = try #require(lines.firstIndex(of: "Capabilities of this desktop:"))
        #expect(lines[(start + 1)...].count == 8, "no advice is possible here: \(lines)")
        #expect(lines.contains { $0.hasPrefix("~ work continues after a force quit: yes, from the next login on. ") }, "\(lines)")
        let wakes =
            mayWake
            ? "? wakes the machine from sleep: not known yet. No request" : "- wakes the machine from sleep: no. This system"
        #expect(lines.contains { $0.hasPrefix(wakes) }, "\(lines)")
    }

    /// The verdict that `doctor` prints about a force quit is true, because the next command starts an agent. The facts that an
    /// app reads match the output of `doctor`.
    @Test func `without a user manager the next command restarts a killed agent`() async throws {
        let server = try await EndToEnd.stormyServer()
        let patient = try Patient(try Desktop(), server)
        let printed = try PrintedGuarantees(patient.home)
        #expect(printed.verdict("survivesForceQuit") == "keptFromNextLogin" && printed.verdict("buttonsAreLive") == "kept")
        try patient.home.killAgent()
        #expect(!FileLock.isHeld(patient.directories.agentLock))
        let before = try Ledger(patient.directories).read { try $0.fact(.agent)?.pid }
        try patient.home.stormy("status")
        try patient.home.wait("another agent") { try $0.fact(.agent)?.pid != before ? true : nil }
        // The agent queries the notification server before it shows its first notification.
        try patient.home.stormy("simulate", "launch", "StormyNoon", "--wait")
        #expect(patient.desktop.listen(for: 1) == ["Storm expected in Here"])
        #expect(try patient.home.wait("its word of the server") { try $0.fact(.serverHasButtons) })
        let known = try patient.home.wait("its word of network and power") { try $0.fact(.conditions)?.conditions.knowledge }
        #expect(known.network == (printed.verdict("networkIsKnown") == "kept"))
        #expect(known.metered == (printed.verdict("meteredIsKnown") == "kept"))
        #expect(known.power == (printed.verdict("powerIsKnown") == "kept"))
    }

    /// The login entry names a missing program. The printed fix repairs the entry.
    @Test func `work does not survive a reboot if the program of the login entry is missing`() async throws {
        let patient = try Patient(try Desktop(), try await EndToEnd.stormyServer())
        try patient.shell("sed -i 's#^Exec=.*#Exec=\"/nowhere/agent\"#' '\(patient.path("config/autostart"))'/*.desktop")
        let before = try PrintedGuarantees(patient.home)
        let reboot = try #require(before.all.first { $0.name == "survivesReboot" })
        #expect(reboot.verdict == "notKept" && reboot.kept == false)
        try patient.shell(try #require(reboot.help) + " >/dev/null")
        #expect(try PrintedGuarantees(patient.home).verdict("survivesReboot") == "keptFromNextLogin")
    }

    @Test func `an app that mounts the commands lists its capabilities`() throws {
        let home = try Home(app: "tide-example")
        let printed = try PrintedGuarantees(home, program: Home.product("tide-example"), ["background"])
        #expect(printed.verdict("survivesForceQuit") == "keptFromNextLogin")
    }

    /// NetworkManager reports whether the network is metered. NetworkManager reports "unknown" if another program manages the
    /// network.
    @Test func `the metered state is known only if NetworkManager reports it`() throws {
        let home = try Home()
        #expect(try PrintedGuarantees(home).verdict("meteredIsKnown") == "notKept")
        let services = try SystemServices([.network])
        home.environment.merge(services.environment) { $1 }
        #expect(try PrintedGuarantees(home).verdict("meteredIsKnown") == "notKept")
        try services.set(.network, "Metered", "uint32 4")
        #expect(try PrintedGuarantees(home).verdict("meteredIsKnown") == "kept")
    }
}

extension EndToEnd.Login {
    /// The verdict that `doctor` prints about a force quit is true. The user manager restarts a killed agent, and the agent
    /// restarts a killed app. The user does not need to run a command.
    @Test func `the user manager restarts a killed agent, and the agent restarts a killed launch`() throws {
        // The launch runs until the test kills it.
        Weather.serve(.silence, on: server)
        try home.stormy("place", "add", "Here", "1,1", "--no-sync")
        #expect(try home.stormy("schedule").status == 0)
        #expect(try home.stormy("simulate", "launch", "StormyNoon").status == 0)
        let first = try home.wait("the launch") { try $0.liveLaunches().first { $0.pid != nil } }
        let printed = try PrintedGuarantees(home)
        #expect(printed.verdict("survivesForceQuit") == "kept")
        let lingers = FileManager.default.fileExists(atPath: "/var/lib/systemd/linger/" + NSUserName())
        for guarantee in printed.all where ["survivesLogout", "survivesReboot"].contains(guarantee.name) {
            #expect(guarantee.verdict == (lingers ? "kept" : "keptFromNextLogin"), "\(guarantee)")
            #expect(guarantee.help == (lingers ? nil : "loginctl enable-linger"))
        }

        let before = home.agentPID
        try home.killAgent()
        try home.wait("another agent") { try $0.fact(.agent)?.pid != before ? true : nil }
        #expect(
            try manager.systemctl("show", "-P", "MainPID", "background-agent-stormy.service").output
                == "\(home.agentPID ?? 0)\n")
        // The process of the app continues, and the next agent takes over its launch.
        let second = try #require(try Ledger(home.directories).read { try $0.liveLaunches().first })
        #expect(second.id == first.id && second.pid == first.pid)
        Weather.serve(.json(Weather.forecast()), on: server)
        kill(try #require(second.pid), SIGKILL)
        try home.wait("its work, done") { try $0.history(limit: 5).first { $0.outcome == .completed } }
    }
}
