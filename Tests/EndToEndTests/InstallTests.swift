import FaultyServer
import Foundation
import StormyFixtures
import Testing

extension EndToEnd {
    /// Tests of `stormy install`. The installed files are checked by the tools that normally read them.
    @Suite struct Install {
        let home: Home
        let share: String

        init() throws {
            home = try Home()
            share = home.folder.path + "/data"
        }

        private func run(_ program: String, _ arguments: String...) throws -> Child.Result {
            try Child.run(program, arguments, environment: home.environment)
        }

        private var files: [String] {
            let names = FileManager.default.enumerator(atPath: share)?.compactMap { $0 as? String } ?? []
            return names.filter { path in
                var isFolder: ObjCBool = false
                return FileManager.default.fileExists(atPath: share + "/" + path, isDirectory: &isFolder) && !isFolder.boolValue
            }.sorted()
        }

        @Test func `the installed files are valid for the tools of the desktop`() throws {
            #expect(try home.stormy("install").status == 0)
            let entry = try run("desktop-file-validate", share + "/applications/stormy.desktop")
            #expect(entry.status == 0 && entry.output.isEmpty, "\(entry)")
            let metainfo = try run(
                "appstreamcli", "validate", "--no-net", share + "/metainfo/io.github.stormy.Stormy.metainfo.xml")
            #expect(metainfo.status == 0, "\(metainfo)")
            let icon = try run(
                "python3", "-c",
                "import sys, xml.dom.minidom as x; print(x.parse(sys.argv[1]).documentElement.getAttribute('viewBox'))",
                share + "/icons/hicolor/scalable/apps/stormy.svg")
            #expect(icon.output == "0 0 128 128\n", "\(icon)")
            for page in files where page.hasPrefix("man/") {
                let shown = try run("man", "--warnings", "-l", share + "/" + page)
                #expect(shown.status == 0 && shown.errors.isEmpty && shown.output.contains("SYNOPSIS"), "\(page): \(shown)")
            }
        }

        /// The command is installed with the name `stormy` and with another name.
        @Test(arguments: ["stormy", "tempest"]) func `bash, fish and zsh have completions`(_ name: String) throws {
            let bin = home.folder.path + "/bin"
            try FileManager.default.createDirectory(atPath: bin, withIntermediateDirectories: true)
            try FileManager.default.createSymbolicLink(atPath: bin + "/" + name, withDestinationPath: Home.product("stormy"))
            home.environment["PATH"] = bin + ":" + (home.environment["PATH"] ?? "")
            #expect(try home.stormy("install", "--into", share, "--program", bin + "/" + name).status == 0)
            let bash = """
                source '\(share)/bash-completion/completions/\(name)'
                set -- $(complete -p \(name)); while [ "$1" != -F ]; do shift; done; function=$2
                for words in '\(name) unsch' '\(name) help unsch'; do
                    set -- $words
                    COMP_LINE=$words; COMP_POINT=${#COMP_LINE}; COMP_WORDS=($words); COMP_CWORD=$(($# - 1)); COMPREPLY=()
                    $function \(name) unsch \(name); echo "${COMPREPLY[@]}"
                done
                """
            #expect(try run("bash", "-c", bash).output == "unschedule\nunschedule\n")
            #expect(try run("fish", "-c", "complete -C '\(name) unsch'").output.hasPrefix("unschedule\t"))
            #expect(try run("fish", "-c", "complete -C '\(name) help unsch'").output == "unschedule\n")
            let zsh = "fpath=('\(share)/zsh/site-functions' $fpath); autoload -U compinit; compinit -D -u; echo $_comps[\(name)]"
            #expect(try run("zsh", "-f", "-c", zsh).output == "_\(name)\n")
            let ofZsh = try String(contentsOfFile: share + "/zsh/site-functions/_" + name, encoding: .utf8)
            #expect(ofZsh.contains("':command:(place schedule unschedule check "))
        }

        @Test func `a second install changes nothing, and uninstall removes all files`() throws {
            let before = files
            let dry = try home.stormy("install", "--dry-run")
            #expect(dry.output.contains("would write \(share)/applications/stormy.desktop"))
            #expect(!files.contains { $0.hasPrefix("applications") })
            #expect(try home.stormy("install").status == 0)
            let written = files
            #expect(try home.stormy("install").output.hasPrefix("No file in "))
            #expect(files == written)
            #expect(try home.stormy("uninstall", "--dry-run").output.contains("would remove"))
            #expect(files == written)
            #expect(try home.stormy("uninstall").status == 0)
            #expect(files.filter { !$0.hasPrefix("stormy/") } == before)
            #expect(!FileManager.default.fileExists(atPath: share + "/man"))
        }

        /// If the user has changed an installed file, the file belongs to the user.
        @Test func `a changed file is neither replaced nor removed`() throws {
            #expect(try home.stormy("install").status == 0)
            let page = share + "/man/man1/stormy-check.1"
            try Data("mine".utf8).write(to: URL(fileURLWithPath: page))
            let again = try home.stormy("install")
            #expect(again.status == 0 && again.errors.contains("\(page) was changed after the installation"), "\(again)")
            #expect(try home.stormy("uninstall").errors.contains(page))
            #expect(try String(contentsOfFile: page, encoding: .utf8) == "mine")
        }

        @Test func `a folder that cannot be written is named`() throws {
            try FileManager.default.createDirectory(atPath: share, withIntermediateDirectories: true)
            try Data().write(to: URL(fileURLWithPath: share + "/applications"))
            let result = try home.stormy("install")
            #expect(result.status == 73 && result.errors.contains(share + "/applications"), "\(result)")
            // `stormy install` removes the files that it wrote before the failure.
            #expect(try home.stormy("uninstall").status == 0)
        }

        /// A package has installed the files for all users. If a user then runs the command, it writes no copies, and removes the
        /// user's older copies.
        @Test func `files that are installed for all users are not installed again`() throws {
            let prefix = home.folder.path + "/everybody"
            try FileManager.default.createDirectory(atPath: prefix + "/bin", withIntermediateDirectories: true)
            let program = prefix + "/bin/stormy"
            try Home.copyProgram(Home.product("stormy"), to: program)
            #expect(try run(program, "install").status == 0)
            #expect(files.contains { $0.hasPrefix("applications") })
            #expect(try run(program, "install", "--into", prefix + "/share", "--program", program).status == 0)
            let again = try run(program, "install")
            #expect(
                again.status == 0
                    && again.output.contains("The files of this app are already installed for all users in \(prefix)/share."),
                "\(again)")
            #expect(again.output.contains("files removed from \(share)."), "\(again)")
            #expect(!files.contains { $0.hasPrefix("applications") })
            let taken = try run(program, "uninstall")
            #expect(taken.status == 0 && taken.output.contains("The files in \(prefix)/share belong to the package"), "\(taken)")
        }

        /// Purge and uninstall remove only Stormy's folders, so no other folders may be created.
        @Test func `requests to servers leave no folders beside Stormy's own`() async throws {
            let server = try await FaultyServer.start()
            Weather.serve(.json(Weather.calm), on: server)
            server.route("POST", "/open", .status(201, headers: ["Location": "/open/a.jpg"]))
            server.route("GET", "/open/a.jpg", .status(200))
            let home = try Home(
                server: server,
                extra: "[upload.destinations.open]\nkind = \"multipart\"\nurl = \"\(server.url)/open\"\nfield = \"photo\"\n")
            home.environment["XDG_CACHE_HOME"] = nil
            #expect(try home.stormy("place", "add", "Here", "1,1").status == 0)
            let photo = home.folder.appendingPathComponent("a.jpg")
            try JPEG.withoutPosition.write(to: photo)
            #expect(try home.stormy("upload", "--wait", photo.path).status == 0)
            let verified = try home.stormy("upload", "--verify")
            #expect(server.requests(matching: "/open/a.jpg").contains { $0.method == "GET" }, "\(verified)")
            #expect(try FileManager.default.contentsOfDirectory(atPath: home.folder.path + "/data") == ["stormy"])
            let caches = (try? FileManager.default.contentsOfDirectory(atPath: home.folder.path + "/.cache")) ?? []
            #expect(!caches.contains("org.swift.foundation.URLCache") && !caches.contains("stormy"), "\(caches)")
        }

        @Test func `another program of the same name in PATH is named`() throws {
            try home.installChooser("true")
            let other = home.folder.path + "/bin/stormy"
            try FileManager.default.copyItem(atPath: home.folder.path + "/bin/zenity", toPath: other)
            #expect(
                try home.stormy("install").errors.contains("the command stormy in your PATH starts another program: \(other)"))
        }
    }

    /// Tests of commands that a menu or a file manager starts. Such commands have no terminal.
    @Suite struct FromTheMenu {
        @Test func `check --tell notifies its result`() async throws {
            let (server, desktop) = (try await FaultyServer.start(), try Desktop())
            let home = try Home(server: server, desktop: desktop)
            #expect(try home.stormy("check", "--tell").status == 66)
            Weather.serve(.json(Weather.calm), on: server)
            #expect(try home.stormy("place", "add", "Here", "1,1").status == 0)
            #expect(try home.stormy("check", "--tell").status == 0)
            #expect(desktop.listen(for: 2) == ["A command of Stormy failed", "No storm expected"])
        }

        @Test func `upload --choose uploads the chosen photo`() async throws {
            let (server, desktop) = (try await FaultyServer.start(), try Desktop())
            let home = try Home(desktop: desktop)
            try home.installChooser("echo '\(home.folder.path)/a.jpg'")
            #expect(try home.stormy("upload", "--choose").status != 0)
            #expect(desktop.listen(for: 1) == ["A command of Stormy failed"], "there is no destination")
            server.route("POST", "/open", .status(200))
            try home.configure(
                """
                [upload]
                default = "open"
                [upload.destinations.open]
                kind = "multipart"
                url = "\(server.url)/open"
                field = "photo"
                """)
            #expect(try home.stormy("upload", "--choose").status == 66, "the file is not there yet")
            #expect(desktop.listen(for: 2).last == "Photo not queued")
            try JPEG.withoutPosition.write(to: home.folder.appendingPathComponent("a.jpg"))
            #expect(try home.stormy("upload", "--choose").status == 0)
            #expect(desktop.listen(for: 3).last == "Photo uploaded")
            // The user chooses the photo again, after it was uploaded.
            #expect(try home.stormy("upload", "--choose").status == 0)
            #expect(desktop.listen(for: 4).last == "Photos are already uploaded or queued")
            // If the user cancels the chooser, this is not an error.
            try home.installChooser("exit 1")
            #expect(try home.stormy("upload", "--choose").status == 0)
        }

        /// The ledger cannot be written, or no agent is installed. If the agent cannot show the notification, the command itself
        /// shows the notification.
        @Test(arguments: ["a file in the way", "somebody holds it", "no agent"])
        func `a chosen photo that cannot be queued is notified`(_ trouble: String) throws {
            let desktop = try Desktop()
            let home = try Home(
                desktop: desktop, extra: "[upload.destinations.open]\nkind = \"put\"\nurl = \"http://127.0.0.1:9/\"\n")
            let photo = home.folder.appendingPathComponent("a.jpg")
            try JPEG.withoutPosition.write(to: photo)
            var holder: Child?
            switch trouble {
            case "a file in the way":
                try FileManager.default.createDirectory(atPath: home.folder.path + "/state", withIntermediateDirectories: true)
                try Data().write(to: home.folder.appendingPathComponent("state/stormy"))
            case "somebody holds it":
                home.environment["STORMY_NO_AGENT"] = "1"
                #expect(try home.stormy("upload", photo.path).status == 0)
                home.environment["STORMY_NO_AGENT"] = nil
                try Data(JPEG.withoutPosition + [0]).write(to: photo)
                holder = try home.stopAWriter(of: "state/stormy/agent.sqlite")
            default: home.environment["BACKGROUND_AGENT"] = nil
            }
            // The folder of the program contains no agent.
            let programs = home.folder.path + "/programs"
            try FileManager.default.createDirectory(atPath: programs, withIntermediateDirectories: true)
            for name in ["stormy", "photo-cleaner", "file-chooser"] {
                try Home.copyProgram(Home.product(name), to: programs + "/" + name)
            }
            let program = trouble == "no agent" ? programs + "/stormy" : Home.product("stormy")
            let result = try Child.run(program, ["upload", "--choose", photo.path], environment: home.environment)
            holder?.end(SIGKILL)
            #expect(result.status != 0, "\(result)")
            let heard = desktop.listen(for: 1).first ?? "nothing"
            #expect(["A command of Stormy failed", "Photo not queued"].contains(heard), "\(heard): \(result)")
        }
    }
}
