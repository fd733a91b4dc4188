import Foundation
import ProcessSupport
import Testing

@testable import UserUnits

/// Tests the files of the units: their content, and changes that the user made.
@Suite final class UserUnitsTests {
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("units-" + UUID().uuidString)
    private let units: UserUnits
    private let environment: [String: String]

    init() {
        // The environment contains no runtime folder, so no user manager is called.
        environment = ["HOME": folder.path, "XDG_STATE_HOME": folder.path + "/100% \"state\""]
        units = UserUnits(directories: AppDirectories(appIdentifier: "app", environment: environment), environment: environment)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    private var text: UnitText {
        UnitText(directories: units.directories, environment: environment, displayName: "My $App\n100 %")
    }

    private func install() throws {
        try units.install(command: ["/opt/my app/agent", "--app", "app"], program: "/opt/my app/agent", displayName: "App")
    }

    @Test func `the service starts a program with special characters in its path`() throws {
        let service = text.service(
            command: ["/opt/a \"b\" $c %d/agent", "--app", "app"], program: "/opt/100%/agent", socket: "s.socket")
        let lines = service.split(separator: "\n").map(String.init)
        #expect(lines.contains(#"ExecStart="/opt/a \"b\" $$c %%d/agent" --app app"#))
        #expect(lines.contains("ConditionPathExists=/opt/100%%/agent"))
        #expect(lines.contains(#"Environment="XDG_STATE_HOME=\#(folder.path)/100%% \"state\"""#))
        #expect(lines.contains("Description=Background work of My $$App 100 %%"))
        #expect(lines.contains("Type=notify") && lines.contains("Wants=s.socket"))
    }

    /// The time of a timer has complete seconds, and is never before the date. If an agent starts too early, no work is due.
    @Test(
        arguments: [0.0, 0.001, 0.999, 59.5, 86_399.2, 1_764_244_800, 7_258_118_399.5],
        [-10.0, 0, 14, 16, 3_600, 86_398, 86_400, 900_000])
    func `a timer never elapses before its date`(_ seconds: Double, _ before: Double) throws {
        let moment = Date(timeIntervalSince1970: seconds)
        let timer = text.timer(at: TimerSchedule(moment, now: moment - before))
        let line = try #require(timer.split(separator: "\n").first { $0.hasPrefix("OnCalendar=") })
        let numbers = line.split { !$0.isNumber }.compactMap { Int($0) }
        var parts = tm()
        var whole = time_t(seconds.rounded(.up))
        gmtime_r(&whole, &parts)
        #expect(
            Array(numbers.suffix(3)) == [parts.tm_hour, parts.tm_min, parts.tm_sec].map { Int($0) } && line.hasSuffix(" UTC"),
            "\(line)")
        if !line.contains("*") {
            #expect(Array(numbers.prefix(3)) == [parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday].map { Int($0) })
        }
    }

    /// A time within a day is written as a time of day, even if it is tomorrow. If the date has passed or is more than a day
    /// away, it is written as a date.
    @Test func `a date within a day is written as a time of day`() {
        let noon = Date(timeIntervalSince1970: 1_764_244_800)
        let daily = TimerSchedule(noon, now: noon - 3_600)
        #expect(daily.line == "OnCalendar=*-*-* 12:00:00 UTC\n" && TimerSchedule(noon + 86_400, now: noon + 0.5) == daily)
        #expect(TimerSchedule(noon, now: noon - 86_400) == .once(noon) && TimerSchedule(noon, now: noon - 86_399) == daily)
        for now in [noon + 1, noon, noon - 10, noon - 90_000] { #expect(TimerSchedule(noon, now: now) == .once(noon)) }
    }

    @Test func `a timer without a date waits only for changes of the clock`() {
        let timer = text.timer(at: nil)
        #expect(!timer.contains("OnCalendar") && !timer.contains("Persistent"))
        #expect(timer.contains("OnClockChange=true") && timer.contains("OnTimezoneChange=true"))
    }

    @Test func `a unit for folders contains each folder, and special characters are escaped`() {
        let path = text.path(["/home/me/My Pictures", "/mnt/100%"])
        #expect(path.contains("\nPathChanged=/home/me/My Pictures\nPathChanged=/mnt/100%%\n"))
    }

    @Test func `installed units are enabled, and their removal leaves no file`() throws {
        try install()
        #expect(units.isInstalled(.service) && units.isInstalled(.socket) && !units.isInstalled(.timer))
        #expect(units.isEnabled(.service) && units.isEnabled(.socket) && !units.isEnabled(.timer))
        #expect(units.remove() == units.url(.service).path)
        let left = try FileManager.default.subpathsOfDirectory(atPath: folder.path).filter { $0.contains("background-agent") }
        #expect(left == [] && units.remove() == nil)
    }

    /// Settings that prevent the service from starting its program, or that may prevent this.
    @Test func `conditions that can prevent a service from starting are found`() {
        func obstacle(_ text: String, isAdded: Bool = true) -> String? { ServiceText(text, isAdded: isAdded).obstacle }
        #expect(obstacle("[Unit]\nConditionPathExists=/\nConditionUser=\n# ConditionACPower=true\n[Service]\nNice=5\n") == nil)
        #expect(obstacle("[Unit]\n ConditionPathExists = /nowhere/100%%\n") == "ConditionPathExists = /nowhere/100%%")
        for line in ["ConditionPathExists=!/nowhere", "ConditionACPower=true", "AssertPathExists=/", "ExecStart=/bin/true"] {
            #expect(obstacle("[Unit]\n\(line)\n") == line)
        }
        let own = text.service(command: ["/opt/agent"], program: "/", socket: "s.socket")
        #expect(obstacle(own, isAdded: false) == nil)
        let moved = text.service(command: ["/opt/agent"], program: "/opt/100%", socket: "s.socket")
        #expect(ServiceText(moved, isAdded: false).missingPath == "/opt/100%")
    }

    @Test func `a relative link enables a unit only if it leads to the unit`() throws {
        try install()
        let wants = units.url(.service).deletingLastPathComponent().appendingPathComponent("default.target.wants")
        let link = wants.appendingPathComponent(units.name(.service)).path
        for (target, enables) in [("../" + units.name(.service), true), ("../" + units.name(.socket), false)] {
            unlink(link)
            try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: target)
            #expect(units.isEnabled(.service) == enables)
        }
    }

    @Test func `a masked timer is not overwritten`() throws {
        try install()
        try FileManager.default.createSymbolicLink(atPath: units.url(.timer).path, withDestinationPath: "/dev/null")
        #expect(units.isMasked(.timer) && !units.isMasked(.service))
        #expect(throws: UserUnits.Failure("background-agent-app.timer is masked")) {
            try units.arm(at: Date(timeIntervalSince1970: 2_000_000_000), displayName: "App")
        }
        #expect(units.isMasked(.timer))
    }

    @Test func `no agent is started without a service`() throws {
        #expect(throws: UserUnits.Failure("\(units.url(.service).path) does not exist")) { try units.demandSocket() }
        #expect(!units.ring())
    }

    @Test func `a folder that cannot be written is an error`() throws {
        try FileManager.default.createDirectory(at: folder.appendingPathComponent(".config"), withIntermediateDirectories: true)
        try Data().write(to: folder.appendingPathComponent(".config/systemd"))
        #expect(throws: StoreError.self) { try install() }
    }
}
