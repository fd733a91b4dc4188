import BackgroundLedger
import FaultyServer
import Foundation
import Testing

extension EndToEnd {
    /// Tests of data that an app for iOS finds again in its next process.
    @Suite struct OrdinarySessions {
        let server: FaultyServer
        let home: Home
        let log: URL

        init() async throws {
            server = try await FaultyServer.start()
            home = try Home(app: "courier-example")
            log = home.folder.appendingPathComponent("courier.log")
            try Data().write(to: log)
            home.environment["COURIER_LOG"] = log.path
            home.environment["COURIER_FOLDER"] = home.folder.path
        }

        private var lines: [String] {
            ((try? String(contentsOf: log, encoding: .utf8)) ?? "").split(separator: "\n").map(String.init)
        }

        /// Cookies and cached responses of the default configuration are kept after the process has ended. Other users cannot
        /// read the cookies and the responses.
        @Test func `the next process has the cookies and the cached responses`() throws {
            server.route(
                "GET", "/kept",
                [
                    .status(200), .headers(["Cache-Control": "max-age=600", "Set-Cookie": "key=value; Max-Age=600"]),
                    .body("answer"),
                ])
            server.route("GET", "/asked", [.status(200), .headers(["Cache-Control": "no-store"]), .body("asked")])
            for _ in 0..<2 {
                let result = try home.run("courier-example", ["ask", server.url + "/kept", server.url + "/asked"])
                #expect(result.status == 0, "\(result)")
            }
            #expect(lines == ["answer 200 answer", "answer 200 asked", "answer 200 answer", "answer 200 asked"])
            #expect(
                server.requests(matching: "/kept").count == 1, "the second process reads the response from the cache of the first"
            )
            #expect(server.requests(matching: "/asked").map { $0.headers["Cookie"] } == ["key=value", "key=value"])
            let files = try Child.run(
                "find", [home.folder.path, "-type", "f", "-perm", "/077", "-newer", "/proc/self/exe"],
                environment: home.environment)
            let readable = files.output.split(separator: "\n").filter { $0.contains("cookies") }
            #expect(readable.isEmpty, "\(readable)")
            #expect(
                try Ledger(home.directories).read { try $0.transfers() }.isEmpty,
                "the agent has no transfer of an ordinary session")
        }

        /// A download ended while its app was not running. The process that is then launched receives the file name of the
        /// response.
        @Test(arguments: [
            ("attachment; filename=\"Episode 1.mp3\"", "Episode 1.mp3"), ("attachment; filename=\"../../.bashrc\"", "bashrc"),
            (nil, "file.mp3"),
        ])
        func `the launched process knows the suggested file name`(_ disposition: String?, _ name: String) throws {
            home.environment["COURIER_NAMES"] = "1"
            var headers: HeaderList = ["Content-Length": "4", "ETag": "\"v1\""]
            if let disposition { headers.lines.append(HeaderLine("Content-Disposition", disposition)) }
            server.route("GET", "/file.mp3", [.status(200), .headers(headers), .body("body")])
            _ = try home.run("courier-example", ["leave", server.url + "/file.mp3"])
            try home.waitForEnded("urlSession")
            try home.waitForQuiet()
            #expect(lines.contains("launched for courier") && lines.contains("name \(name)"), "\(lines)")
        }
    }
}
