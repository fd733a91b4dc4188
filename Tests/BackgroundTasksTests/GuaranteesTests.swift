import BackgroundRuntime
import BackgroundScheduling
import BackgroundTasks
import Foundation
import ProcessSupport
import Testing

/// Tests of the guarantees that follow from the facts of a desktop. The table of this suite lists the tested desktops.
@Suite struct GuaranteesTests {
    typealias Name = BackgroundGuarantees.Guarantee.Name
    typealias Verdict = BackgroundGuarantees.Guarantee.Verdict

    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let change: @Sendable (inout DesktopFacts) -> Void
        let verdicts: [Name: Verdict]
        let says: String

        init(
            _ desktop: String, _ verdicts: [Name: Verdict], says: String = ".",
            _ change: @escaping @Sendable (inout DesktopFacts) -> Void
        ) {
            (testDescription, self.verdicts, self.says, self.change) = (desktop, verdicts, says, change)
        }
    }

    /// A desktop on which every guarantee is kept.
    private static let best = DesktopFacts(
        hasAgent: true, isInFlatpak: false, hasUserManager: true, lingers: true, entry: .userUnit(.asItShouldBe),
        waking: .alarmIsSet,
        knowledge: DesktopConditions.Knowledge(network: true, metered: true, power: true), buttons: .shown,
        installCommand: "app install")

    private static let survivals: [Name] = [.survivesLogout, .survivesReboot, .survivesForceQuit]

    private static func survives(_ logout: Verdict, _ reboot: Verdict, _ kill: Verdict) -> [Name: Verdict] {
        [.survivesLogout: logout, .survivesReboot: reboot, .survivesForceQuit: kill]
    }

    static let rows: [Row] = [
        Row("everything", [:]) { _ in },
        Row("no lingering", survives(.keptFromNextLogin, .keptFromNextLogin, .kept), says: "next login") {
            $0.lingers = false
        },
        Row("nothing asked for yet", survives(.keptFromNextLogin, .keptFromNextLogin, .kept)) {
            ($0.lingers, $0.entry) = (false, .none(workIsLeft: false))
        },
        Row("work, and no entry", survives(.notKept, .notKept, .notKept), says: "The agent does not start at login") {
            $0.entry = .none(workIsLeft: true)
        },
        Row("no manager, nothing asked for", survives(.keptFromNextLogin, .keptFromNextLogin, .keptFromNextLogin)) {
            ($0.hasUserManager, $0.entry) = (false, .none(workIsLeft: false))
        },
        Row("autostart", survives(.keptFromNextLogin, .keptFromNextLogin, .keptFromNextLogin), says: "next login") {
            ($0.hasUserManager, $0.lingers, $0.entry) = (false, false, .xdgAutostart(.asItShouldBe))
        },
        Row("autostart beside a manager", survives(.keptFromNextLogin, .keptFromNextLogin, .keptFromNextLogin)) {
            $0.entry = .xdgAutostart(.asItShouldBe)
        },
        Row("a unit whose manager is not seen", survives(.keptFromNextLogin, .keptFromNextLogin, .keptFromNextLogin)) {
            $0.hasUserManager = false
        },
        Row("a masked unit", survives(.notKept, .notKept, .notKept), says: "masked") { $0.entry = .userUnit(.isMasked) },
        Row("a unit that is not enabled", survives(.notKept, .notKept, .kept), says: "not enabled") {
            $0.entry = .userUnit(.isNotEnabled)
        },
        Row("a unit without its program", survives(.notKept, .notKept, .notKept), says: "does not exist") {
            $0.entry = .userUnit(.startsNothing("/gone"))
        },
        Row("an entry without its program", survives(.notKept, .notKept, .notKept), says: "does not exist") {
            $0.entry = .xdgAutostart(.startsNothing("/gone"))
        },
        Row("another copy", [:]) { $0.entry = .userUnit(.starts("/other")) },
        Row("a unit of an earlier version", [:]) { $0.entry = .userUnit(.lacksSocket) },
        Row("no agent", survives(.notKept, .notKept, .notKept), says: "not installed") { $0.hasAgent = false },
        Row("a Flatpak", survives(.notKept, .notKept, .notKept), says: "Flatpak") { $0.isInFlatpak = true },
        Row("battery", [.wakesSystem: .notKept], says: "on battery") { $0.waking = .hindered(.lowBattery) },
        Row("no capability", [.wakesSystem: .notKept], says: "CAP_WAKE_ALARM") { $0.waking = .notAllowed },
        Row("no request asked to be woken", [.wakesSystem: .unknown], says: "The first such request") { $0.waking = .untried },
        Row("no network service", [.networkIsKnown: .notKept], says: "assumes") { $0.knowledge?.network = false },
        Row("no NetworkManager", [.meteredIsKnown: .notKept], says: "counts as unmetered") { $0.knowledge?.metered = false },
        Row("no power service", [.powerIsKnown: .notKept], says: "plugged in") { $0.knowledge?.power = false },
        Row(
            "nobody has looked", [.networkIsKnown: .unknown, .meteredIsKnown: .unknown, .powerIsKnown: .unknown],
            says: "No agent has checked the machine yet"
        ) { $0.knowledge = nil },
        Row("no buttons", [.buttonsAreLive: .notKept], says: "no buttons") { $0.buttons = .notShown },
        Row("no session", [.buttonsAreLive: .notKept], says: "The desktop is not known") { $0.buttons = .noSession },
        Row("no server", [.buttonsAreLive: .notKept], says: "nobody owns the name") {
            $0.buttons = .unreachable("nobody owns the name")
        },
        Row("switched off", [.buttonsAreLive: .notKept], says: "turned off") { $0.buttons = .switchedOff },
        Row("nobody has asked", [.buttonsAreLive: .unknown], says: "not checked yet") { $0.buttons = .unknown },
    ]

    @Test(arguments: rows) func `every desktop has the guarantees of its facts`(_ row: Row) {
        var facts = Self.best
        row.change(&facts)
        let guarantees = BackgroundGuarantees(facts)
        #expect(guarantees.all.map(\.name) == Name.allCases)
        for guarantee in guarantees.all {
            let verdict = row.verdicts[guarantee.name] ?? .kept
            #expect(guarantee.verdict == verdict, "\(guarantee)")
            #expect(guarantee.isKept == (verdict == .kept))
            #expect(guarantee.reason.hasSuffix(".") && guarantee.reason.count < 140, "\(guarantee.reason)")
            if verdict != .kept { #expect(guarantee.reason.contains(row.says), "\(guarantee.reason)") }
        }
    }

    /// If a guarantee had the same verdict in every row, the table would not test this guarantee.
    @Test func `the table has a kept row and a broken row for each guarantee`() {
        for name in Name.allCases {
            #expect(Self.rows.contains { $0.verdicts[name] == .notKept }, "\(name)")
            #expect(Self.rows.contains { $0.verdicts[name] == nil }, "\(name)")
        }
    }

    /// A command is shown as help only if it improves the guarantee.
    @Test func `a help command is shown only if it helps`() {
        func help(_ change: (inout DesktopFacts) -> Void) -> [String?] {
            var facts = Self.best
            change(&facts)
            let all = BackgroundGuarantees(facts)
            return [all.survivesLogout.help, all.survivesReboot.help, all.survivesForceQuit.help]
        }
        #expect(help { _ in } == [nil, nil, nil])
        #expect(help { $0.lingers = false } == ["loginctl enable-linger", "loginctl enable-linger", nil])
        #expect(help { $0.hasUserManager = false } == [nil, nil, nil], "without a user manager, lingering has no effect")
        #expect(help { $0.entry = .none(workIsLeft: true) } == ["app install", "app install", "app install"])
        #expect(help { $0.entry = .userUnit(.isNotEnabled) } == ["app install", "app install", nil])
    }

    @Test func `guarantees are decoded as they were encoded`() throws {
        let guarantees = BackgroundGuarantees(Self.best)
        let read = try JSONDecoder().decode(BackgroundGuarantees.self, from: JSONEncoder().encode(guarantees))
        #expect(read == guarantees)
    }

    /// The verdicts are not checked, because they depend on the machine that runs the tests.
    @Test func `guarantees of this machine can be read without creating a ledger`() {
        let ledger = AppRuntime.ofProcess.directories.ledger.path
        let wasThere = FileManager.default.fileExists(atPath: ledger)
        #expect(BackgroundGuarantees(AppRuntime.ofProcess.desktopFacts).all.map(\.name) == Name.allCases)
        #expect(FileManager.default.fileExists(atPath: ledger) == wasThere)
    }

    // MARK: The facts

    private func facts(
        _ environment: [String: String] = [:], _ change: (inout DesktopFacts.Recorded) -> Void
    ) -> DesktopFacts {
        var recorded = DesktopFacts.Recorded()
        change(&recorded)
        let directories = AppDirectories(appIdentifier: "app", environment: ["HOME": "/nowhere"])
        return DesktopFacts(directories, environment: environment, recorded: recorded)
    }

    @Test func `the state of the buttons follows from what the agent recorded`() {
        #expect(facts { _ in }.buttons == .noSession)
        #expect(facts(["DBUS_SESSION_BUS_ADDRESS": "unix:path=/bus"]) { _ in }.buttons == .unknown)
        #expect(facts { $0.knowsSession = true }.buttons == .unknown)
        #expect(facts { $0.serverHasButtons = true }.buttons == .shown)
        #expect(facts { $0.serverHasButtons = false }.buttons == .notShown)
        #expect(facts { ($0.serverHasButtons, $0.presenterTrouble) = (true, "gone") }.buttons == .unreachable("gone"))
        #expect(facts { ($0.serverHasButtons, $0.notificationsEnabled) = (true, false) }.buttons == .switchedOff)
    }

    @Test func `a missing login entry matters only if work is left`() {
        #expect(facts { _ in }.entry == .none(workIsLeft: false))
        #expect(facts { $0.hasWorkLeft = true }.entry == .none(workIsLeft: true))
        #expect(!facts { _ in }.hasUserManager)
    }

    @Test func `capabilities are parsed in the format of the kernel`() {
        let none = "Name:\tx\nCapPrm:\t000001ffffffffff\nCapEff:\t0000000000000000\nCapAmb:\t0000000000000000\n"
        #expect(ProcessCapabilities(status: none)?.has(.wakeAlarm) == false)
        #expect(ProcessCapabilities(status: "CapEff:\t0000000800000000\n")?.has(.wakeAlarm) == true)
        #expect(ProcessCapabilities(status: "CapEff:\t00000007ffffffff\n")?.has(.wakeAlarm) == false)
        #expect(ProcessCapabilities(status: "CapEff:\t\n") == nil && ProcessCapabilities(status: "") == nil)
        #expect(ProcessCapabilities(of: nil) != nil && ProcessCapabilities(of: -1) == nil)
    }
}
