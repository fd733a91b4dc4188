import FaultyServer
import Foundation
import StormyFixtures
import Testing

extension EndToEnd {
    @Suite struct Help {
        /// Tests the help of all commands of `stormy-rehearse`, and of one command of `stormy`. `StormyCommandTests` tests the
        /// other commands without a process.
        @Test func `the help of a real process has an example`() throws {
            let home = try Home()
            var (open, seen) = ([["demo"], ["rehearse"], ["status"]], 0)
            while let verb = open.popLast() {
                let result = try home.run("stormy", verb + ["--help"])
                let name = (["stormy"] + verb).joined(separator: " ")
                #expect(result.status == 0 && result.output.contains("Example:\n  \(name)"), "\(name): \(result)")
                #expect(!result.output.contains("<rest>"), "\(name): \(result)")
                seen += 1
                guard let list = result.output.range(of: "SUBCOMMANDS:\n") else { continue }
                for line in result.output[list.upperBound...].split(separator: "\n", omittingEmptySubsequences: false) {
                    // The names of commands begin at column two. Continued lines begin further to the right.
                    guard line.hasPrefix("  ") else { break }
                    guard !line.hasPrefix("   "), let word = line.split(separator: " ").first else { continue }
                    open.append(verb + [word.trimmingCharacters(in: .punctuationCharacters)])
                }
            }
            #expect(seen >= 2, "\(seen)")
        }

        @Test(arguments: [
            "stormy help", "stormy --help", "stormy --version", "stormy status --help", "proving-ground background --help",
            "proving-ground background status",
        ])
        func `help on a full device exits with 74`(_ command: String) throws {
            let home = try Home()
            let result = try Child.run(
                "sh", ["-c", "'\(Home.products.path)'/\(command) > /dev/full"], environment: home.environment)
            #expect(result.status == 74, "\(result)")
        }

        /// The reader of a pipe may close the pipe early.
        @Test func `a list whose reader exits early is not an error`() throws {
            let home = try Home()
            let words = "set -o pipefail; '\(Home.product("stormy"))' rehearse --list | head -n 1"
            let result = try Child.run("bash", ["-c", words], environment: home.environment)
            #expect(result.status == 0 && result.errors == "", "\(result)")
        }

        /// The test sets the locale in the environment of a real process. Other tests check other locales without a process.
        @Test(arguments: [("en_US.UTF-8", "12:00 PM")])
        func `times follow the locale`(_ locale: String, _ noon: String) throws {
            let home = try Home()
            home.environment["STORMY_NO_AGENT"] = "1"
            home.environment["LC_ALL"] = nil
            home.environment["LC_TIME"] = locale
            home.environment["LANG"] = locale
            // The check is on the same day, so its time is printed without a date.
            home.environment["TZ"] = "UTC"
            let said = try home.stormy("schedule").output
            let next = said.split(separator: "\n").first ?? ""
            #expect(next.contains("\(noon) (in ") && next.contains("PM") == noon.contains("PM"), "\(said)")
            // The printed time has the format that notifications use.
            let night = try home.stormy("schedule", "--at", "02:00").output
            #expect(night.contains(noon.contains("PM") ? " 2:00 AM (in " : " 02:00 (in "), "\(night)")
        }

        /// The test sets the locale in the environment of a real process.
        @Test(arguments: [("en_US.UTF-8", "rain of 0.09 in per hour")])
        func `units follow the locale`(_ locale: String, _ rain: String) async throws {
            let server = try await FaultyServer.start()
            Weather.serve(.json(Weather.forecast()), on: server)
            let home = try Home(server: server)
            home.environment["STORMY_NO_AGENT"] = "1"
            home.environment["LC_ALL"] = nil
            home.environment["LC_MEASUREMENT"] = locale
            home.environment["LANG"] = "C"
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            let said = try home.stormy("check").output
            #expect(said.contains(rain), "\(said)")
            #expect(said.hasSuffix("The daily check is off. `stormy schedule` turns the check on.\n"), "\(said)")
            #expect(try home.stormy("check", "--json").output.contains("with rain of 2.4 mm per hour"))
        }

        /// The terminal has forty columns. No line is wrapped. On a terminal without cursor control, no line is drawn again.
        @Test func `progress fits the width of the terminal`() async throws {
            let server = try await FaultyServer.start()
            let file = Payload.pattern(3_000_000)
            server.route("GET", "/file", .file(file, etag: "\"v1\""))
            let home = try Home()
            let stormy = Home.product("stormy")
            func run(_ terminal: String, _ name: String) throws -> String {
                (home.environment["TERM"], home.environment["NO_COLOR"]) = (terminal, nil)
                let words =
                    "stty cols 40; '\(stormy)' download '\(server.url)/file' --limit-rate 2M -o '\(home.folder.path)/\(name)' --wait"
                return try Child.run("script", ["-qec", words, "/dev/null"], environment: home.environment).output
            }
            let shown = try run("xterm", "one")
            let frames = shown.components(separatedBy: "\r\u{1B}[K").dropFirst().map { $0.prefix { $0 != "\r" && $0 != "\r\n" } }
            #expect(frames.contains { $0.contains("MB of 3.0 MB") }, "\(shown)")
            for frame in frames where frame.contains("MB of") { #expect(frame.count < 40, "\(frame)") }
            #expect(try !run("dumb", "two").contains("\u{1B}"))
        }

        @Test func `a companion program prints its own help and version`() throws {
            let home = try Home()
            #expect(try home.stormy("help", "rehearse").output.contains("--serve"))
            #expect(try home.stormy("rehearse", "--version").output == home.stormy("--version").output)
        }

        @Test func `a missing companion program is named`() throws {
            let home = try Home()
            let alone = home.folder.appendingPathComponent("alone")
            try FileManager.default.createDirectory(at: alone, withIntermediateDirectories: true)
            let stormy = alone.appendingPathComponent("stormy")
            try Home.copyProgram(Home.product("stormy"), to: stormy.path)
            let result = try Child.run(
                stormy.path, ["demo"], environment: home.environment.merging(["PATH": "/nowhere"]) { $1 })
            #expect(result.status == 69)
            #expect(result.errors.contains("stormy-rehearse was not found in \(alone.path)"), "\(result.errors)")
            #expect(result.errors.utf8.count < 400, "\(result.errors)")
        }
    }
}
