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
    }
}
