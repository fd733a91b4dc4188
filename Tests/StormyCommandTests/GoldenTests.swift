import BackgroundTasksTesting
import Foundation
import ServerScripts
import StormyFixtures
import Testing

/// Compares commands with files in `Golden`: their exit codes and both output streams.
///
/// If `UPDATE_GOLDEN=1` is set and `CI` is not set, the test writes the files.
@Suite(.timeLimit(.minutes(30))) struct GoldenTests {
    struct Situation: Sendable, CustomTestStringConvertible {
        let name: String
        let commands: [[String]]
        var locale = "C.UTF-8"
        var configuration = PhotoHome.destination() + "[schedule]\nspread_seconds = 0\n"
        var hasAgent = true
        /// The number of columns and the type of the terminal, if the commands print to a terminal.
        var columns: Int?
        var terminal = "xterm"
        var prepare: @Sendable (VirtualHome, DavStore) async throws -> Void = { _, _ in }

        var testDescription: String { name }
    }

    @Test(arguments: situations) func `commands print the content of the expected file`(_ situation: Situation) async throws {
        try await PhotoHome.play(situation.configuration) { home, store in
            home.environment["LC_ALL"] = situation.locale
            home.environment["TERM"] = situation.terminal
            home.environment["NO_COLOR"] = nil
            home.columns = situation.columns
            await home.setStartsAgents(situation.hasAgent)
            try await situation.prepare(home, store)
            var text = ""
            for command in situation.commands {
                let words = command.map { $0.replacingOccurrences(of: "HOME", with: home.folder.path) }
                let result = try await home.stormy(words)
                text += "$ stormy \(command.map { $0.contains(" ") ? "\"\($0)\"" : $0 }.joined(separator: " "))\n"
                text += result.output + (result.errors.isEmpty ? "" : "--- standard error\n\(result.errors)")
                text += "--- exit code \(result.status)\n\n"
            }
            try Self.compare(Self.normalized(text, home), situation.name)
        }
    }

    @Test func `every file belongs to a situation`() throws {
        let files = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path)
        #expect(Set(files) == Set(Self.situations.map { $0.name + ".txt" }))
    }

    private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("Golden")

    /// Replaces the text that differs between two runs: folders, process numbers, and the offset of this installation.
    private static func normalized(_ text: String, _ home: VirtualHome) -> String {
        var text = text.replacingOccurrences(of: home.folder.path, with: "HOME")
        for (pattern, replacement) in [
            (#"pid \d+"#, "pid PID"), (#"the check runs \d+ (s|min)"#, "the check runs N s"),
            ("\u{1B}", "ESC"), (#"looked in .*|not found in .*"#, "not found in FOLDERS"),
        ] {
            text = text.replacingOccurrences(of: pattern, with: replacement, options: .regularExpression)
        }
        return text
    }

    private static func compare(_ text: String, _ name: String) throws {
        let file = folder.appendingPathComponent(name + ".txt")
        let environment = ProcessInfo.processInfo.environment
        if environment["UPDATE_GOLDEN"] == "1", environment["CI"] == nil {
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            try Data(text.utf8).write(to: file)
        }
        let wanted = (try? String(contentsOf: file, encoding: .utf8)) ?? ""
        #expect(text == wanted, "\(file.lastPathComponent) differs; UPDATE_GOLDEN=1 writes it again")
    }

    // MARK: Situations

    private static let addSydney = ["place", "add", "Sydney", "-33.87,151.21", "--no-sync"]

    @Sendable private static func withPlace(_ home: VirtualHome, _: DavStore) async throws { try await home.stormy(addSydney) }

    @Sendable private static func calm(_ home: VirtualHome, _ store: DavStore) async throws {
        home.serveCalm()
        try await withPlace(home, store)
    }

    @Sendable private static func storm(_ home: VirtualHome, _ store: DavStore) async throws {
        home.serveForecast()
        try await withPlace(home, store)
        try await home.stormy("schedule")
        try await home.check()
        try await home.driver.settle()
    }

    @Sendable private static func photos(_ home: VirtualHome, _ store: DavStore) async throws {
        for name in ["one.jpg", "two.jpg"] { try home.picture(name) }
    }

    private static let empty: [Situation] = [
        Situation(
            name: "empty",
            commands: [["status"], ["check"], ["forecast"], ["why"], ["history"], ["transfers"], ["place", "list"]],
            hasAgent: false),
        Situation(name: "help", commands: [["help"]]),
        Situation(name: "help-transfers", commands: [["help", "transfers"]]),
        Situation(name: "help-upload", commands: [["help", "upload"]]),
        Situation(name: "exit-codes", commands: [["exit-codes"]]),
        Situation(name: "unknown-command", commands: [["uplaod"], ["transfers", "cancel"], ["transfers", "--limit", "-1"]]),
        Situation(
            name: "configuration-mistake", commands: [["check"], ["config", "--check"]],
            prepare: { home, _ in try home.configure("[storm]\ngusts_kmh = \"a\"\n") }),
        Situation(
            name: "quit-with-nothing", commands: [["quit"], ["unschedule"]], hasAgent: false),
    ]

    private static let schedules: [Situation] = [
        Situation(name: "schedule", commands: [["schedule"], ["status"], ["why"]], prepare: withPlace),
        Situation(name: "schedule-without-a-place", commands: [["schedule"]]),
        Situation(name: "schedule-7pm", commands: [["schedule", "--at", "7pm", "--exact"]], prepare: withPlace),
        Situation(name: "schedule-7", commands: [["schedule", "--at", "7", "--exact"]], prepare: withPlace),
        Situation(name: "schedule-noon", commands: [["schedule", "--at", "noon", "--exact"]], prepare: withPlace),
        Situation(name: "schedule-mistake", commands: [["schedule", "--at", "25:00"], ["schedule", "--at", "13pm"]]),
        Situation(
            name: "schedule-without-an-agent", commands: [["schedule", "--exact"], ["status"], ["why"]], hasAgent: false,
            prepare: withPlace),
        Situation(
            name: "unschedule", commands: [["schedule", "--exact"], ["unschedule"], ["status"], ["why"]], prepare: withPlace),
        Situation(
            name: "schedule-in-english", commands: [["schedule", "--exact"], ["status"]], locale: "en_US.UTF-8",
            prepare: withPlace),
        Situation(
            name: "schedule-in-german", commands: [["schedule", "--exact"], ["status"]], locale: "de_DE.UTF-8", prepare: withPlace
        ),
    ]

    private static let places: [Situation] = [
        Situation(
            name: "places",
            commands: [
                addSydney, addSydney, ["place", "list"], ["place", "rename", "Sydney", "Home"],
                ["place", "move", "Home", "-33.9,151.2", "--no-sync"],
                ["place", "remove", "Home", "Perth"], ["place", "add", "Here", "95,200", "--no-sync"],
            ])
    ]

    private static let terminals = [40, 80].map { (columns: Int) in
        Situation(
            name: "terminal-of-\(columns)-columns",
            commands: [["check"], ["status"], ["transfers", "--all"], ["place", "remove", "Mount Everest Base Camp"]],
            columns: columns, prepare: storm)
    }

    private static let weather: [Situation] = [
        Situation(name: "calm", commands: [["check"], ["status"], ["forecast", "--hours", "6"]], prepare: calm),
        Situation(
            name: "dumb-terminal", commands: [["check"], ["status"], ["forecast", "--hours", "3"]], columns: 60, terminal: "dumb",
            prepare: storm),
        Situation(name: "calm-in-german", commands: [["check"], ["status"]], locale: "de_DE.UTF-8", prepare: calm),
        Situation(name: "storm", commands: [["check"], ["status"], ["history"], ["transfers"]], prepare: storm),
        Situation(name: "storm-in-english", commands: [["check"], ["status"]], locale: "en_US.UTF-8", prepare: storm),
        Situation(
            name: "storm-is-called-off", commands: [["status"], ["history"], ["transfers"]],
            prepare: { home, store in
                try await storm(home, store)
                try await home.driver.advance(by: .seconds(3600))
                home.serveCalm()
                try await home.check()
                try await home.driver.settle()
            }),
        Situation(
            name: "offline", commands: [["check", "--fresh"], ["check"], ["status"], ["forecast"]],
            prepare: { home, store in
                try await calm(home, store)
                home.serve(.status(503))
            }),
        Situation(
            name: "offline-with-an-old-forecast",
            commands: [["check", "--fresh"], ["check"], ["check", "--offline"], ["status"]],
            prepare: { home, store in
                try await calm(home, store)
                try await home.stormy("check")
                try await home.driver.advance(by: .seconds(7200))
                home.serve(.status(503))
            }),
        Situation(
            name: "do-not-disturb", commands: [["status"]],
            prepare: { home, store in
                home.driver.notifications.setDoNotDisturb(true)
                try await storm(home, store)
            }),
        Situation(
            name: "no-notification-server", commands: [["status"]],
            prepare: { home, store in
                home.driver.notifications.vanish()
                try await storm(home, store)
            }),
        Situation(
            name: "no-bus", commands: [["status"]],
            prepare: { home, store in
                home.driver.notifications.vanish(
                    because: .noSessionBus("DBUS_SESSION_BUS_ADDRESS is not set and XDG_RUNTIME_DIR has no bus"))
                try await storm(home, store)
            }),
    ]

    private static let uploads: [Situation] = [
        Situation(
            name: "upload-without-a-destination", commands: [["upload", "HOME/camera/one.jpg"]], configuration: "",
            prepare: photos),
        Situation(
            name: "upload", commands: [["upload", "HOME/camera/one.jpg", "HOME/camera/two.jpg"], ["transfers"]], hasAgent: false,
            prepare: photos),
        Situation(
            name: "upload-and-wait",
            commands: [
                ["upload", "--wait", "HOME/camera/one.jpg"], ["upload", "HOME/camera/one.jpg"], ["transfers"], ["history"],
                ["upload", "--verify"],
            ],
            prepare: photos),
        Situation(
            name: "upload-some-are-missing",
            commands: [["upload", "HOME/camera/one.jpg", "HOME/camera/three.jpg", "HOME/camera"]],
            hasAgent: false, prepare: photos),
        Situation(
            name: "upload-with-location",
            commands: [["upload", "HOME/camera/here.jpg"], ["upload", "--keep-location", "HOME/camera/here.jpg"]],
            hasAgent: false, prepare: { home, _ in try home.picture("here.jpg", isLocated: true) }),
        Situation(
            name: "upload-held-back", commands: [["upload", "HOME/held.heic"], ["status"], ["transfers"]], hasAgent: false,
            prepare: { home, _ in try home.write(OtherPicture.heic, to: "held.heic") }),
        Situation(
            name: "upload-for-a-storm",
            commands: [
                ["upload", "--wait", "--storm", "Sydney", "HOME/camera/one.jpg"],
                ["upload", "--storm", "Perth", "HOME/camera/two.jpg"], ["status"],
            ],
            prepare: { home, store in
                try await storm(home, store)
                try await photos(home, store)
            }),
        Situation(
            name: "upload-fails",
            commands: [["upload", "--wait", "HOME/camera/one.jpg"], ["transfers"], ["history"], ["transfers", "retry", "all"]],
            prepare: { home, store in
                try await photos(home, store)
                store.refuse(status: 403, method: "PUT", next: 1)
            }),
        Situation(
            name: "upload-waits-for-the-server",
            commands: [["upload", "HOME/camera/one.jpg"], ["transfers"], ["transfers", "--verbose"]],
            prepare: { home, store in
                try await photos(home, store)
                home.server.route("PUT", "/photos/*", .status(507))
            }),
        Situation(
            name: "upload-folder-of-300",
            commands: [
                ["upload", "--recursive", "--wait", "HOME/camera"], ["transfers", "--limit", "3"], ["status"], ["history"],
            ],
            prepare: { home, _ in
                for number in 1...300 { try home.picture("IMG_\(1000 + number).jpg") }
                try home.write(Data("notes".utf8), to: "camera/notes.txt")
            }),
        Situation(
            name: "upload-later", commands: [["upload", "--when", "charging", "HOME/camera/one.jpg"], ["transfers"], ["why"]],
            hasAgent: false, prepare: photos),
    ]

    private static let transfers: [Situation] = [
        Situation(
            name: "transfers-actions",
            commands: [
                ["upload", "HOME/camera/one.jpg", "HOME/camera/two.jpg"], ["transfers", "pause", "1"], ["transfers"],
                ["transfers", "resume", "1"],
                ["transfers", "cancel", "1", "9"], ["transfers", "cancel", "1"], ["transfers", "retry", "all"], ["transfers"],
            ], hasAgent: false, prepare: photos),
        Situation(
            name: "transfers-clear",
            commands: [
                ["upload", "--wait", "HOME/camera/one.jpg"], ["transfers", "clear"], ["transfers"], ["transfers", "--all"],
            ],
            prepare: photos),
        Situation(
            name: "download",
            commands: [
                ["download", VirtualHome.origin + "/file", "-o", "HOME/file", "--wait"],
                ["download", VirtualHome.origin + "/none", "-o", "HOME/none", "--wait"], ["download", "ftp://x/y"], ["transfers"],
            ],
            prepare: { home, _ in
                home.server.route(
                    "GET", "/file", ResponseScript([.status(200), .headers(["Content-Length": "5"]), .body("bytes")]))
            }),
        Situation(
            name: "quit",
            commands: [["upload", "HOME/camera/one.jpg"], ["schedule", "--exact"], ["quit"], ["status"], ["transfers"]],
            hasAgent: false, prepare: photos),
    ]

    static let situations = empty + schedules + places + terminals + weather + uploads + transfers
}
