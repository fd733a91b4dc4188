import Foundation
import Testing

extension EndToEnd {
    @Suite struct Help {
        /// Every verb says how it is used, with an example.
        @Test(arguments: [
            "place", "schedule", "unschedule", "check", "status", "why", "history", "upload", "transfers", "agent", "quit",
            "simulate", "demo", "rehearse",
        ])
        func showsAnExample(_ verb: String) throws {
            let result = try Home().stormy(verb, "--help")
            #expect(result.status == 0)
            #expect(result.output.contains("Example:\n  stormy \(verb)"))
        }

        /// What another program does, that program explains.
        @Test func aCompanionExplainsItself() throws {
            let home = try Home()
            #expect(try home.stormy("help", "rehearse").output.contains("--serve"))
            #expect(try home.stormy("rehearse", "--version").output == home.stormy("--version").output)
        }

        @Test func aCompanionThatIsMissingIsNamed() throws {
            let home = try Home()
            let alone = home.folder.appendingPathComponent("alone")
            try FileManager.default.createDirectory(at: alone, withIntermediateDirectories: true)
            let stormy = alone.appendingPathComponent("stormy")
            try FileManager.default.copyItem(atPath: Home.product("stormy"), toPath: stormy.path)
            let result = try Child.run(
                stormy.path, ["demo"], environment: home.environment.merging(["PATH": "/nowhere"]) { $1 })
            #expect(result.status == 69)
            #expect(result.errors.contains("stormy-rehearse is not in \(alone.path)"), "\(result.errors)")
            #expect(result.errors.utf8.count < 400, "\(result.errors)")
        }
    }
}
