import FaultyServer
import Foundation
import Testing

extension EndToEnd {
    /// Tests of commands whose environment is unusual: ignored signals, a missing `/proc`, low limits and a full standard output.
    @Suite struct InheritedState {
        private let nginx: Nginx
        private let home: Home
        private let camera: URL

        init() throws {
            nginx = try Nginx()
            home = try Home(
                extra: """
                    [upload]
                    default = "home"
                    [upload.destinations.home]
                    kind = "webdav"
                    url = "\(nginx.url)photos/"
                    [upload.destinations.second]
                    kind = "webdav"
                    url = "\(nginx.url)photos/second/"

                    """)
            camera = home.folder.appendingPathComponent("camera")
            try FileManager.default.createDirectory(at: camera, withIntermediateDirectories: true)
        }

        private func shell(_ script: String, _ variables: [String: String] = [:]) throws -> Child.Result {
            let environment = home.environment.merging(variables) { $1 }.merging(["TOOL": Home.product("stormy")]) { $1 }
            return try Child.run("sh", ["-c", script], environment: environment)
        }

        @discardableResult
        private func picture(_ name: String) throws -> String {
            let file = camera.appendingPathComponent(name)
            try (Data([0xFF, 0xD8, 0xFF]) + Data(name.utf8)).write(to: file)
            return file.path
        }

        /// An agent that cannot take its lock would wait for minutes without a message.
        @Test func `a lock of the agent that cannot be taken is reported by the first command`() throws {
            try FileManager.default.createDirectory(at: home.directories.agentLock, withIntermediateDirectories: true)
            for arguments in [["schedule"], ["upload", try picture("one.jpg")]] {
                let result = try home.stormy(arguments)
                #expect(
                    result.status == 69 && result.errors.contains("agent.lock cannot be created: Is a directory"), "\(result)")
            }
        }

        /// If a program inherits an ignored SIGCHLD, the kernel does not keep the exit codes of its children.
        @Test func `the exit code of a child is known if SIGCHLD was ignored at the start`() throws {
            let bin = home.folder.appendingPathComponent("bin")
            try FileManager.default.createDirectory(at: bin, withIntermediateDirectories: true)
            let browser = bin.appendingPathComponent("xdg-open")
            try Data("#!/bin/sh\nexit 3\n".utf8).write(to: browser)
            chmod(browser.path, 0o700)
            let start =
                "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
            let path = bin.path + ":" + (home.environment["PATH"] ?? "")
            let result = try Child.run(
                "python3", ["-c", start, Home.product("stormy"), "report", "--open"],
                environment: home.environment.merging(["PATH": path]) { $1 })
            #expect(result.status == 69 && result.errors.contains("no browser could be started"), "\(result)")
        }

        /// The first argument of a command that was found in PATH is only its name. A program with this name can be in the current
        /// folder.
        @Test(.enabled(if: Namespaces.areAllowed, "namespaces are not allowed here"))
        func `the program's own path is correct without /proc`() throws {
            let script = """
                mount -t tmpfs none /proc || exit 9
                mkdir '\(home.folder.path)/other' && cd '\(home.folder.path)/other' && printf '#!/bin/sh\n' > stormy && chmod +x stormy
                PATH='\(Home.products.path)':$PATH; export PATH STORMY_NO_AGENT=1
                stormy schedule
                """
            let result = try Child.run("unshare", Namespaces.withOwnMounts(script), environment: home.environment)
            #expect(result.status == 0, "\(result)")
            let folder = home.environment["XDG_CONFIG_HOME"].map { URL(fileURLWithPath: $0) }
            let entries = try #require(folder).appendingPathComponent("autostart")
            let name = try #require(try FileManager.default.contentsOfDirectory(atPath: entries.path).first)
            let entry = try String(contentsOf: entries.appendingPathComponent(name), encoding: .utf8)
            #expect(entry.contains(Home.product("stormy")) && !entry.contains("/other/"), "\(entry)")
        }

        /// A shell can have a low soft limit. An agent that the shell started continues to run for other shells.
        @Test func `an agent raises a low soft limit of open files`() throws {
            let sent = try shell("ulimit -S -n 22; \"$TOOL\" upload '\(try picture("one.jpg"))'")
            #expect(sent.status == 0, "\(sent)")
            let other = try home.stormy("upload", "--wait", try picture("two.jpg"))
            #expect(other.status == 0, "\(other)")
            try home.waitForQuiet()
            #expect(try FileManager.default.contentsOfDirectory(atPath: nginx.photos.path).sorted() == ["one.jpg", "two.jpg"])
        }

        @Test func `a full standard output is reported with its reason`() throws {
            let result = try shell("\"$TOOL\" place add A 1,1 --no-sync >/dev/full")
            #expect(
                result.status == 74 && result.errors.contains("standard output cannot be written: No space left"), "\(result)")
        }

        @Test func `a result does not replace a file of Stormy`() throws {
            try home.stormy("place", "add", "A", "1,1", "--no-sync")
            let file = home.directories.configuration.appendingPathComponent("config.toml").path
            let before = try Data(contentsOf: URL(fileURLWithPath: file))
            let report = try home.stormy("report", "-o", file)
            #expect(report.status == 73 && report.errors.contains("is a file of Stormy"), "\(report)")
            let other = home.directories.configuration.appendingPathComponent("other.toml").path
            #expect(try home.stormy("download", "http://127.0.0.1:9/x", "-o", other).status == 73)
            let picture = try home.stormy("forecast", "A", "--svg", file)
            #expect(picture.status != 0, "\(picture)")
            #expect(try Data(contentsOf: URL(fileURLWithPath: file)) == before)
        }

        // MARK: Choosers

        /// A file chooser can return the address of a file on a network server.
        @Test func `a chosen file on a network server is reported`() throws {
            try home.installChooser("echo '\(try picture("one.jpg"))'; echo smb://nas/photos/storm.jpg")
            let result = try home.stormy("upload", "--choose", "--wait")
            #expect(
                result.status == 69 && result.errors.contains("smb://nas/photos/storm.jpg is not on this computer"), "\(result)")
            #expect(try home.rows("transfers").isEmpty)
        }

        @Test func `a chosen name that is not UTF-8 is not the name of another file`() throws {
            try picture("bad\u{FFFD}.jpg")
            try home.installChooser("printf '\(camera.path)/bad\\377.jpg\\n'")
            let result = try home.stormy("upload", "--choose", "--wait")
            #expect(result.status == 69 && result.errors.contains("is not UTF-8"), "\(result)")
        }

        @Test func `a chosen path is not a pattern`() throws {
            try picture("one_a.jpg")
            try home.installChooser("echo '\(camera.path)/*_a.jpg'")
            let result = try home.stormy("upload", "--choose", "--wait")
            #expect(result.status == 66, "\(result)")
            #expect(try home.rows("transfers").isEmpty)
        }

        // MARK: Verification

        /// The ledger with the receipt of the first upload is lost.
        @Test func `a photo without a receipt at one destination is reported although another destination has it`() throws {
            let photo = try picture("one.jpg")
            #expect(try home.stormy("upload", "--wait", "--to", "second", photo).status == 0)
            try home.stormy("quit")
            try FileManager.default.removeItem(at: home.directories.state)
            #expect(try home.stormy("upload", "--wait", photo).status == 0)
            let all = try home.stormy("upload", "--verify")
            #expect(all.status == 69 && all.errors.contains("1 photo cannot be checked"), "\(all)")
            let named = try home.stormy("upload", "--verify", photo)
            #expect(named.status == 69 && named.output.contains("one.jpg: the file is correct"), "\(named)")
        }
    }
}
