import Foundation
import Testing

/// Tests the help, the messages for mistyped commands, and the locale of the output.
@Suite(.timeLimit(.minutes(30))) struct HelpTests {
    /// Commands that replace their process by `stormy-rehearse`. `stormy-rehearse` prints the help of these commands, which
    /// `EndToEnd.Help` tests.
    private static let companionCommands: Set = ["demo", "rehearse"]

    @Test func `the help of every command has an example`() async throws {
        try await VirtualHome.play { home in
            var (open, seen, skipped) = ([[String]()], 0, Set<String>())
            while let command = open.popLast() {
                let result = try await home.stormy(command + ["--help"])
                let name = (["stormy"] + command).joined(separator: " ")
                #expect(result.status == 0 && result.output.contains("Example:\n  \(name)"), "\(name): \(result)")
                #expect(!result.output.contains("<rest>"), "\(name): \(result)")
                seen += 1
                for word in Self.subcommands(in: result.output) {
                    if command.isEmpty, Self.companionCommands.contains(word) {
                        skipped.insert(word)
                    } else {
                        open.append(command + [word])
                    }
                }
            }
            #expect(seen >= 19, "\(seen)")
            #expect(skipped == Self.companionCommands)
        }
    }

    private static func subcommands(in help: String) -> [String] {
        // The names of commands are indented by two columns. The further lines of a description are indented more.
        help.components(separatedBy: "SUBCOMMANDS:\n").dropFirst().flatMap { list in
            list.split(separator: "\n", omittingEmptySubsequences: false).prefix { $0.hasPrefix("  ") }
                .filter { !$0.hasPrefix("   ") }
                .compactMap { $0.split(separator: " ").first?.trimmingCharacters(in: .punctuationCharacters) }
        }
    }

    @Test(arguments: [("chekc", "check"), ("statsu", "status"), ("uplaod", "upload")])
    func `a mistyped command is recognized`(_ typed: String, _ meant: String) async throws {
        try await VirtualHome.play { home in
            let result = try await home.stormy(typed, "--json")
            #expect(result.status == 64 && result.errors.contains("Did you mean: stormy \(meant)?"), "\(result)")
            #expect(try await home.stormy("xyzzyxyzzy").status == 64)
        }
    }

    /// The time format of a locale is used even if the locale is not installed on the system.
    @Test(arguments: [
        ("de_DE.UTF-8", "12:00"), ("en_US.UTF-8", "12:00 PM"), ("C", "12:00"), ("", "12:00"), ("nonsense", "12:00"),
        ("fr_CH.UTF-8@euro", "12:00"),
    ])
    func `times are printed in the format of the locale`(_ locale: String, _ noon: String) async throws {
        try await VirtualHome.play { home in
            await home.setStartsAgents(false)
            home.environment["LC_ALL"] = nil
            home.environment["LC_TIME"] = locale
            home.environment["LANG"] = locale
            // The first scheduled check is in two hours, and the second scheduled check is in sixteen hours. Only a time on a
            // later day has a date.
            let said = try await home.stormy("schedule").output
            let next = said.split(separator: "\n").first ?? ""
            #expect(next.contains("\(noon) (in ") && next.contains("PM") == noon.contains("PM"), "\(said)")
            // The format of the time is the same as in a notification.
            let night = try await home.stormy("schedule", "--at", "02:00").output
            #expect(night.contains(noon.contains("PM") ? " 2:00 AM (in " : " 02:00 (in "), "\(night)")
        }
    }

    /// The locale determines the units in texts. In JSON, the units are metric in every locale.
    @Test(arguments: [
        ("en_US.UTF-8", "rain of 0.09 in per hour"), ("en_GB.UTF-8", "rain of 2.4 mm per hour"),
        ("C", "rain of 2.4 mm per hour"),
    ])
    func `units are printed in the system of the locale`(_ locale: String, _ rain: String) async throws {
        try await VirtualHome.play { home in
            await home.setStartsAgents(false)
            home.serveForecast()
            home.environment["LC_ALL"] = nil
            home.environment["LC_MEASUREMENT"] = locale
            home.environment["LANG"] = "C"
            try await home.stormy("place", "add", "Here", "1,1", "--no-sync")
            let said = try await home.stormy("check").output
            #expect(said.contains(rain), "\(said)")
            #expect(said.hasSuffix("The daily check is off. `stormy schedule` turns the check on.\n"), "\(said)")
            #expect(try await home.stormy("check", "--json").output.contains("with rain of 2.4 mm per hour"))
        }
    }

    /// Tests the words that a shell offers when the user presses Tab. The completion script requests these words from the
    /// program.
    @Test func `the shell completes places, destinations, transfers and requests`() async throws {
        try await PhotoHome.play(PhotoHome.destination()) { home, _ in
            func offered(_ words: String...) async throws -> Set<String> {
                let result = try await home.stormy(["---completion"] + words)
                return Set(result.output.split(separator: "\n").map(String.init))
            }
            // Before the first use, no words are offered, and no file is created.
            let files = try FileManager.default.subpathsOfDirectory(atPath: home.folder.path)
            #expect(try await offered("check", "--", "positional@0", "0", "0", "").isEmpty)
            #expect(try FileManager.default.subpathsOfDirectory(atPath: home.folder.path) == files)
            try await home.stormy("place", "add", "Sydney", "-33.87,151.21", "--no-sync")
            try await home.stormy("place", "add", "New York", "40.7,-74", "--no-sync")
            try await home.stormy("schedule")
            #expect(try await offered("check", "--", "positional@0", "0", "0", "") == ["Sydney", "New York"])
            #expect(try await offered("place", "remove", "--", "positional@0", "0", "0", "") == ["Sydney", "New York"])
            #expect(try await offered("why", "--", "positional@0", "0", "0", "") == ["StormyNoon"])
            #expect(try await offered("simulate", "--", "positional@1", "0", "0", "") == ["StormyNoon"])
            #expect(try await offered("transfers", "--", "positional@1", "0", "0", "") == ["all"])
            #expect(try await offered("upload", "--", "--to", "0", "0", "") == ["home"])
        }
    }
}
