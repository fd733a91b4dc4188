import BackgroundLedger
import CLinux
import FaultyServer
import Foundation
import ProcessSupport
import StormyFixtures
import Testing

/// The faults that `doctor` must find, by group.
enum PlantedFaults {
    static let groups: [String: [PlantedFault]] = [
        "environment": environment, "files": files, "stores": stores, "agent": agent, "programs": programs, "login": login,
        "notifications": notifications, "configuration": configuration, "work": work,
    ]

    static var all: [PlantedFault] { groups.values.flatMap { $0 } }

    private static func variable(_ name: String, _ value: String) -> @Sendable (Patient) throws -> Void {
        { $0.home.environment[name] = value }
    }

    static let environment: [PlantedFault] = [
        PlantedFault("no agent may be started", "environment", plant: variable("STORMY_NO_AGENT", "1")),
        PlantedFault("another agent is named", "environment", plant: variable("BACKGROUND_AGENT", "/nowhere/agent")),
        PlantedFault("left over from a rehearsal", "environment", plant: variable("BACKGROUND_REHEARSAL", "/nowhere/socket")),
        PlantedFault("relative folder", "environment", plant: variable("XDG_DATA_HOME", "data")),
        PlantedFault("no runtime folder", "environment", plant: variable("XDG_RUNTIME_DIR", "/nowhere/run")),
        PlantedFault("unknown zone", "environment", says: "noon", plant: variable("TZ", "Mars/Olympus_Mons")),
        PlantedFault("another program of that name", "installation", says: "another program") { patient in
            try patient.shell(
                "mkdir -p '\(patient.path("bin"))'; printf '#!/bin/sh\\n' > '\(patient.path("bin/stormy"))'; chmod +x '\(patient.path("bin/stormy"))'"
            )
            patient.home.environment["PATH"] = patient.path("bin") + ":" + (patient.home.environment["PATH"] ?? "")
        },
        PlantedFault("an installed file is gone", "installation", says: "1 installed file") { patient in
            try patient.home.stormy("install")
            try patient.shell("rm '\(patient.path("data/applications/stormy.desktop"))'")
        },
        PlantedFault("the list of installed files is damaged", "installation") { patient in
            try patient.home.stormy("install")
            _ = try patient.write("{", to: "data/stormy/installed.json")
        },
        PlantedFault("installed by a copy that is gone", "installation") { patient in
            try patient.shell(
                "mkdir '\(patient.path("old"))'; cp '\(Home.product("stormy"))' '\(patient.path("old/stormy"))'; '\(patient.path("old/stormy"))' install 2>/dev/null; rm -r '\(patient.path("old"))'"
            )
            // With this command, the path of the correct program is stored.
            try patient.home.stormy("why")
        },
    ]

    static let files: [PlantedFault] = [
        PlantedFault("others write the configuration", "files") {
            try $0.shell("chmod 777 '\($0.directories.configuration.path)'")
        },
        PlantedFault("others write the state", "files") { try $0.shell("chmod 770 '\($0.directories.state.path)'") },
        PlantedFault("others write the data", "files") { try $0.shell("chmod 722 '\($0.directories.data.path)'") },
        PlantedFault("others read the ledger", "files", says: "can read") {
            try $0.shell("chmod 644 '\($0.directories.ledger.path)'")
        },
        PlantedFault("others read the log", "files") { try $0.shell("chmod 666 '\($0.directories.agentLog.path)'") },
        PlantedFault("the ledger is read-only", "files", says: "written") {
            try $0.shell("chmod 400 '\($0.directories.ledger.path)'")
        },
        PlantedFault("the spool is read-only", "files") { try $0.shell("chmod 500 '\($0.directories.spool.path)'") },
        PlantedFault("a file in the place of the spool", "files", says: "not a folder") { patient in
            let spool = patient.directories.spool.path
            try patient.shell("mv '\(spool)' '\(spool).old'; : > '\(spool)'")
        },
        PlantedFault("a folder in the place of the ledger", "files", says: "not a file") { patient in
            try patient.home.killAgent()
            let ledger = patient.directories.ledger.path
            try patient.shell("rm '\(ledger)'*; mkdir '\(ledger)'")
        },
        PlantedFault("a file in the place of the state", "files") { patient in
            try patient.home.killAgent()
            let state = patient.directories.state.path
            try patient.shell("rm -r '\(state)'; : > '\(state)'")
        },
        PlantedFault("the clock went back", "clock", says: "last check", .notAtAll) { patient in
            try patient.home.killAgent()
            try patient.ledger { try $0.setFact(.lookedAt, Date(timeIntervalSinceNow: 40 * 86_400)) }
        },
        PlantedFault(
            "the clock stands before the program", "clock", says: "was built",
            .byHand { try $0.shell("touch '\($0.path("programs/stormy"))'") }
        ) { patient in
            try patient.useCopies(restarts: false)
            try patient.shell("touch -d '+3 years' '\(patient.path("programs/stormy"))'")
        },
    ]

    static let stores: [PlantedFault] = [
        PlantedFault("the ledger is damaged", "ledger", says: "damaged") { patient in
            try patient.home.killAgent()
            let ledger = patient.directories.ledger.path
            try patient.shell("rm -f '\(ledger)-wal' '\(ledger)-shm'")
            _ = try patient.write(String(repeating: "no ledger ", count: 900), to: "state/stormy/agent.sqlite")
        },
        PlantedFault("pages of the ledger are damaged", "ledger", says: "damaged") { patient in
            try patient.home.killAgent()
            let ledger = patient.directories.ledger.path
            try patient.sql("PRAGMA wal_checkpoint(TRUNCATE)", on: ledger)
            try patient.shell("dd if=/dev/zero of='\(ledger)' bs=4096 seek=2 count=6 conv=notrunc 2>/dev/null")
        },
        PlantedFault(
            "the ledger is of a newer version", "ledger", says: "newer",
            .byHand {
                try $0.sql("DELETE FROM grdb_migrations WHERE identifier = '99'", on: $0.directories.ledger.path)
            }
        ) { patient in
            try patient.home.killAgent()
            try patient.sql("INSERT INTO grdb_migrations VALUES ('99')", on: patient.directories.ledger.path)
        },
        PlantedFault("the ledger has no log", "ledger", says: "earlier") { patient in
            try patient.home.killAgent()
            try patient.sql("PRAGMA journal_mode = DELETE", on: patient.directories.ledger.path)
        },
        PlantedFault("a writer was stopped", "ledger", says: "stopped") { patient in
            try patient.home.killAgent()
            patient.held.append(try patient.home.stopAWriter(of: "state/stormy/agent.sqlite"))
        },
        PlantedFault("Stormy's store is damaged", "store", says: "damaged") { patient in
            try patient.home.killAgent()
            let store = patient.path("data/stormy/stormy.sqlite")
            try patient.shell("rm -f '\(store)-wal' '\(store)-shm'")
            _ = try patient.write(String(repeating: "no store ", count: 900), to: "data/stormy/stormy.sqlite")
        },
        PlantedFault("pages of Stormy's store are damaged", "store", says: "damaged") { patient in
            try patient.home.killAgent()
            let store = patient.path("data/stormy/stormy.sqlite")
            try patient.sql("PRAGMA wal_checkpoint(TRUNCATE)", on: store)
            // Page 1 of the database, with the list of tables, is kept.
            try patient.shell("dd if=/dev/zero of='\(store)' bs=4096 seek=2 count=6 conv=notrunc 2>/dev/null")
        },
        PlantedFault(
            "Stormy's store is of a newer version", "store", says: "newer",
            .byHand {
                try $0.sql("DELETE FROM grdb_migrations WHERE identifier = '99'", on: $0.path("data/stormy/stormy.sqlite"))
            }
        ) { patient in
            try patient.sql("INSERT INTO grdb_migrations VALUES ('99')", on: patient.path("data/stormy/stormy.sqlite"))
        },
        PlantedFault(
            "the store is gone, and a check planned", "daily-check", says: "no places",
            .byHand {
                try $0.shell("mv '\($0.path("data/away"))' '\($0.path("data/stormy"))'")
            }
        ) { try $0.shell("mv '\($0.path("data/stormy"))' '\($0.path("data/away"))'") },
        PlantedFault(
            "no place is left", "places", says: "place add", .byHand { try $0.home.stormy("place", "add", "There", "2,2") }
        ) {
            try $0.home.stormy("place", "remove", "Here")
        },
        PlantedFault("the ledger is gone", "daily-check", says: "has no request for it") { patient in
            try patient.home.killAgent()
            try patient.shell("rm -r '\(patient.directories.state.path)'")
        },
        PlantedFault("the check is off", "daily-check", says: "off") { try $0.home.stormy("unschedule") },
    ]

    static let agent: [PlantedFault] = [
        PlantedFault("the agent was killed", "agent", says: "no agent runs") { try $0.home.killAgent() },
        PlantedFault("the agent was stopped", "agent", says: "suspended") { try $0.home.freezeAgent() },
        PlantedFault("somebody else holds its lock", "agent", says: "no agent") { patient in
            try patient.home.killAgent()
            let script = """
                import fcntl, signal, struct, sys
                file = open(sys.argv[1], "r+")
                fcntl.fcntl(file, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
                open(sys.argv[2], "w").write("locked")
                signal.pause()
                """
            let mark = try patient.write("", to: "locked")
            patient.held.append(
                try Child(
                    "python3", ["-c", script, patient.directories.agentLock.path, mark], environment: patient.home.environment))
            #expect(FileWatch.wait(mark) { !$0.isEmpty } != nil)
        },
        PlantedFault("its program was replaced", "agent", says: "replaced") { patient in
            try patient.useCopies()
            try patient.home.wait("the agent") { try $0.fact(.agent) }
            let program = patient.path("programs/background-agent")
            try patient.shell("cp '\(program)' '\(program).new'; mv '\(program).new' '\(program)'")
        },
        PlantedFault("the app is another copy", "app-program", says: "another copy") { patient in
            try patient.ledger { transaction in
                var app = try #require(try transaction.fact(.app))
                app.executable = "/bin/true"
                try transaction.setFact(.app, app)
            }
        },
        PlantedFault("the app's program is gone", "app-program", says: "does not exist") { patient in
            try patient.ledger { transaction in
                var app = try #require(try transaction.fact(.app))
                app.executable = "/nowhere/stormy"
                try transaction.setFact(.app, app)
            }
        },
        PlantedFault("a launch was stopped", "launch", says: "does not continue") { patient in
            Weather.serveHeld(on: patient.server)
            try patient.home.stormy("simulate", "launch", "StormyNoon")
            let pid = try patient.home.wait("a launch") { try $0.liveLaunches().first?.pid }
            kill(pid, SIGSTOP)
            patient.server.openGate("rest")
            Weather.serve(.json(Weather.calm), on: patient.server)
        },
    ]

    static let programs: [PlantedFault] = [
        PlantedFault(
            "no agent is installed", "agent-program", says: "Install Stormy again",
            .byHand {
                try $0.shell("cp '\(Home.product("background-agent"))' '\($0.path("programs/background-agent"))'")
            }
        ) { patient in
            try patient.useCopies()
            try patient.shell("rm '\(patient.path("programs/background-agent"))'")
        },
        PlantedFault("the agent is not executable", "agent-program") { patient in
            try patient.useCopies()
            try patient.shell("chmod 644 '\(patient.path("programs/background-agent"))'")
        },
        PlantedFault(
            "the agent's program does not work", "notifications", says: "does not work",
            .byHand {
                try $0.shell("cp '\(Home.product("background-agent"))' '\($0.path("programs/background-agent"))'")
            }
        ) { patient in
            try patient.useCopies()
            try patient.shell("rm '\(patient.path("programs/background-agent"))'")
            _ = try patient.write(
                "#!/bin/sh\necho libnotify.so.4: no such file >&2; exit 127\n", to: "programs/background-agent", mode: 0o700)
        },
        PlantedFault(
            "no photo cleaner is installed", "photo-cleaner", says: "no photo is uploaded",
            .byHand {
                try $0.shell("cp '\(Home.product("photo-cleaner"))' '\($0.path("programs/photo-cleaner"))'")
            }
        ) { patient in
            try patient.useCopies()
            try patient.shell("rm '\(patient.path("programs/photo-cleaner"))'")
        },
        PlantedFault("the photo cleaner is not executable", "photo-cleaner") { patient in
            try patient.useCopies()
            try patient.shell("chmod 600 '\(patient.path("programs/photo-cleaner"))'")
        },
        PlantedFault(
            "the photo cleaner does not work", "photo-cleaner", says: "libz",
            .byHand {
                try $0.shell("cp '\(Home.product("photo-cleaner"))' '\($0.path("programs/photo-cleaner"))'")
            }
        ) { patient in
            try patient.useCopies()
            try patient.shell("rm '\(patient.path("programs/photo-cleaner"))'")
            _ = try patient.write(
                "#!/bin/sh\necho libz.so.1: no such file >&2; exit 127\n", to: "programs/photo-cleaner", mode: 0o700)
        },
        PlantedFault("the chooser is not executable", "file-chooser") { patient in
            try patient.useCopies()
            try patient.shell("chmod 600 '\(patient.path("programs/file-chooser"))'")
        },
        PlantedFault(
            "nothing can choose a file", "file-chooser", says: "Install xdg-desktop-portal",
            .byHand { try $0.home.installChooser("exit 1") }
        ) { try $0.shell("rm '\($0.path("bin/zenity"))'") },
    ]

    private static func entry(_ patient: Patient) -> String { patient.path("config/autostart/background-agent-stormy.desktop") }

    /// `doctor` detects a user manager by its socket. In this test, the socket of the user manager accepts no requests. Requests
    /// are not needed, because the test only checks whether the unit is found at the next login.
    private static func installUnits(_ patient: Patient) throws {
        try patient.shell(
            "mkdir -p '\(patient.path("run/systemd"))'; : > '\(patient.path("run/systemd/private"))'; rm '\(entry(patient))'")
        try patient.home.stormy("install")
        try patient.home.stormy("schedule")
    }

    static let login: [PlantedFault] = [
        PlantedFault("the entry is gone", "login", says: "nothing starts") { try $0.shell("rm '\(entry($0))'") },
        PlantedFault("the entry starts nothing", "login", says: "does not exist") {
            try $0.shell(
                "sed -i 's#\\(Exec=.*\"\\)/.*/stormy\"#\\1/nowhere/stormy\"#' '\(entry($0))'; grep -q nowhere '\(entry($0))'")
        },
        PlantedFault("the entry starts another program", "login", says: "instead of this program") {
            try $0.shell("sed -i 's#\\(Exec=.*\"\\)/.*/stormy\"#\\1/bin/true\"#' '\(entry($0))'; grep -q bin/true '\(entry($0))'")
        },
        PlantedFault("the entry is empty", "login") { try $0.shell(": > '\(entry($0))'") },
        PlantedFault("the user unit is not enabled", "login", says: "not enabled") { patient in
            try installUnits(patient)
            try patient.shell("rm '\(patient.path("config/systemd/user/default.target.wants/background-agent-stormy.service"))'")
        },
        PlantedFault("the user unit has lost its socket", "login", says: "has no socket") { patient in
            try installUnits(patient)
            try patient.shell("rm '\(patient.path("config/systemd/user/background-agent-stormy.socket"))'")
        },
        PlantedFault(
            "the user unit is masked", "login", says: "is masked",
            .byHand { patient in
                try patient.shell("rm '\(patient.path("config/systemd/user/background-agent-stormy.service"))'")
                try patient.home.stormy("install")
            }
        ) { patient in
            try installUnits(patient)
            try patient.shell("ln -sf /dev/null '\(patient.path("config/systemd/user/background-agent-stormy.service"))'")
        },
    ]

    static let notifications: [PlantedFault] = [
        PlantedFault(
            "a server without buttons", "notifications", says: "without buttons",
            .byHand { patient in
                for child in patient.held { child.end(SIGKILL) }
                try patient.desktop.startServer()
            }
        ) { patient in
            patient.desktop.endServer()
            let mock = [
                "-m", "dbusmock", "--session", "--template", "notification_daemon", "-p",
                "{\"capabilities\": \"body persistence\"}",
            ]
            // Debian's Python is used, because another Python in the path does not have the needed modules.
            patient.held.append(try Child("/usr/bin/python3", mock, environment: patient.home.environment))
            try patient.shell("gdbus wait --session --timeout 20 org.freedesktop.Notifications")
        },
        PlantedFault("no server runs", "notifications", says: "no notification server runs") { $0.desktop.endServer() },
        PlantedFault("the server froze", "notifications", says: "stopped") { kill(try #require($0.desktop.serverPID), SIGSTOP) },
        PlantedFault(
            "no bus is known", "notifications", says: "no session bus",
            .byHand {
                $0.home.environment.merge($0.desktop.environment) { $1 }
            }
        ) { patient in
            try patient.home.killAgent()
            for name in patient.desktop.environment.keys { patient.home.environment[name] = nil }
            try patient.ledger { try $0.setFact(.sessionEnvironment, nil) }
        },
        PlantedFault(
            "the bus is gone", "notifications", says: "bus",
            .byHand {
                $0.home.environment.merge($0.desktop.environment) { $1 }
                try $0.home.stormy("why")
            }
        ) { patient in
            patient.home.environment["DBUS_SESSION_BUS_ADDRESS"] = "unix:path=" + patient.path("no-bus")
            try patient.home.stormy("why")
        },
        PlantedFault(
            "they are turned off", "notifications", says: "turned off",
            .byHand {
                try $0.home.configure("[weather]\nbase_url = \"\($0.server.url)\"\n")
                try $0.home.stormy("schedule")
            }
        ) { patient in
            try patient.home.configure("[weather]\nbase_url = \"\(patient.server.url)\"\n[notifications]\nenabled = false\n")
            try patient.home.stormy("schedule")
        },
    ]

    private static func configured(_ text: String, mode: mode_t = 0o600) -> @Sendable (Patient) throws -> Void {
        { _ = try $0.write(text, to: "config/stormy/config.toml", mode: mode) }
    }

    private static func destination(_ lines: String, url: String = "http://localhost:9/dav/") -> String {
        "[upload.destinations.home]\nkind = \"webdav\"\nurl = \"\(url)\"\n\(lines)\n"
    }

    static let configuration: [PlantedFault] = [
        PlantedFault("not TOML", "configuration", says: "TOML", plant: configured("[weather\n")),
        PlantedFault("a mistyped key", "configuration", says: "did you mean", plant: configured("[storm]\ngust_kmh = 80\n")),
        PlantedFault("a wrong value", "configuration", says: "cannot be", plant: configured("[schedule]\nspread_seconds = -3\n")),
        PlantedFault(
            "an unknown service", "configuration", plant: configured("[weather]\nprovider = \"yahoo\"\n")),
        PlantedFault(
            "a password that others read", "configuration", says: "other users",
            plant: configured(destination("user = \"me\"\npassword = \"hunter2\""), mode: 0o644)),
        PlantedFault("a folder in its place", "configuration") {
            try $0.shell("rm '\($0.path("config/stormy/config.toml"))'; mkdir '\($0.path("config/stormy/config.toml"))'")
        },
        PlantedFault(
            "no file with the token", "destination", says: "does not exist", .byHand { _ = try $0.write("t0k3n\n", to: "token") }
        ) {
            try configured(destination("token_file = \"\($0.path("token"))\""))($0)
        },
        PlantedFault("a token that others read", "destination", says: "other users can read") { patient in
            let file = try patient.write("t0k3n\n", to: "token", mode: 0o644)
            try configured(destination("token_file = \"\(file)\""))(patient)
        },
        PlantedFault(
            "a token of two lines", "destination", says: "more than one line",
            .byHand { _ = try $0.write("t0k3n\n", to: "token") }
        ) { patient in
            let file = try patient.write("t0k3n\r\nanother\n", to: "token")
            try configured(destination("token_file = \"\(file)\""))(patient)
        },
        PlantedFault(
            "a folder in the place of the token", "destination", says: "is not a file",
            .byHand { try configured(destination("token_file = \"\(try $0.write("t0k3n\n", to: "token2"))\""))($0) }
        ) { patient in
            try patient.shell("mkdir -m 755 '\(patient.path("token"))'")
            try configured(destination("token_file = \"\(patient.path("token"))\""))(patient)
        },
        PlantedFault("an empty token", "destination", says: "empty", .byHand { _ = try $0.write("t0k3n\n", to: "token") }) {
            patient in
            let file = try patient.write("", to: "token")
            try configured(destination("token_file = \"\(file)\""))(patient)
        },
        PlantedFault(
            "a password in the clear", "destination", says: "without encryption",
            .byHand {
                try configured(destination("user = \"me\"\npassword = \"hunter2\"", url: "https://dav.example.org/"))($0)
            }, plant: configured(destination("user = \"me\"\npassword = \"hunter2\"", url: "http://dav.example.org/"))),
    ]

    static let work: [PlantedFault] = [
        PlantedFault(
            "a check fails again and again", "requests", says: "times in a row",
            .byHand {
                try $0.home.stormy("simulate", "launch", "StormyNoon", "--wait")
            }
        ) { patient in
            try patient.home.killAgent()
            try patient.sql("UPDATE request SET failures = 4, lastFailureAt = 0", on: patient.directories.ledger.path)
        },
        PlantedFault("uploads are paused", "transfers", says: "1 transfer is paused") { patient in
            try upload(patient, to: .status(200))
            try patient.home.stormy("transfers", "pause", "all")
        },
        PlantedFault("an upload was given up", "transfers", says: " failed") { patient in
            patient.server.route("POST", "/open", .status(403))
            try configureForm(patient)
            try patient.home.stormy("upload", photo(patient), "--wait")
            patient.server.route("POST", "/open", .status(200))
        },
        PlantedFault("the service refused", "weather", says: "could not be checked") { patient in
            Weather.serve(.status(500), on: patient.server)
            try patient.home.stormy("check")
            Weather.serve(.json(Weather.calm), on: patient.server)
        },
        PlantedFault(
            "no contact for MET Norway", "warnings", says: "add contact = ",
            .byHand { try $0.home.stormy("place", "remove", "Oslo") }
        ) { try $0.home.stormy("place", "add", "Oslo", "59.91,10.75", "--no-sync") },
        PlantedFault("no check for days", "weather", says: "last checked") { patient in
            try patient.sql("UPDATE checkResult SET at = at - 3 * 86400", on: patient.path("data/stormy/stormy.sqlite"))
        },
    ]

    private static func photo(_ patient: Patient) throws -> String {
        let file = patient.home.folder.appendingPathComponent("a.jpg")
        try JPEG.withoutPosition.write(to: file)
        return file.path
    }

    private static func configureForm(_ patient: Patient) throws {
        try patient.home.configure(
            """
            [weather]
            base_url = "\(patient.server.url)"
            [upload.destinations.open]
            kind = "multipart"
            url = "\(patient.server.url)/open"
            field = "photo"
            """)
    }

    /// Queues an upload that has not ended.
    private static func upload(_ patient: Patient, to end: ResponseScript) throws {
        patient.server.route("POST", "/open", end)
        try configureForm(patient)
        try patient.home.killAgent()
        patient.home.environment["STORMY_NO_AGENT"] = "1"
        try patient.home.stormy("upload", photo(patient))
        patient.home.environment["STORMY_NO_AGENT"] = nil
    }
}
