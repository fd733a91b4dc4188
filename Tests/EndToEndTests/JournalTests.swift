import FaultyServer
import Foundation
import Testing

extension EndToEnd {
    /// Tests with a real journal in a private namespace. The journal receives the standard error of an agent.
    @Suite struct TheJournal {
        private static let programs = ["/lib/systemd/systemd-journald", "/usr/bin/journalctl", "/usr/bin/systemd-cat"]
        static let isThere =
            Namespaces.areAllowed && getuid() == 0 && access("/etc/machine-id", R_OK) == 0
            && programs.allSatisfy { access($0, X_OK) == 0 }

        /// A service manager does not start a service that is still running. The agent therefore reports its end before it exits.
        @Test func `the agent reports its start and end to the service manager`() throws {
            let home = try Home()
            let socket = try ReadySocket(home.folder.appendingPathComponent("notify").path)
            let agent = try home.startAgent(["NOTIFY_SOCKET": socket.path])
            #expect(socket.waitForReady(seconds: Home.patience))
            // The agent has no work, so it exits.
            #expect(socket.wait(for: "STOPPING=1", seconds: Home.patience))
            agent.waitForEnd()
        }

        /// The messages can be found by their fields. The messages contain no secret, and the log file is empty.
        @Test(.enabled(if: isThere)) func `the journal has the messages of the agent with fields`() async throws {
            let server = try await FaultyServer.start()
            server.route("GET", "/gone", .status(404))
            server.route("PUT", "/photos/*", .status(401))
            let home = try Home()
            try home.configure(
                """
                [upload.destinations.put]
                kind = "put"
                url = "\(server.url)/photos/"
                user = "me"
                password = "hunter2"

                """)
            let photo = home.folder.appendingPathComponent("a.jpg")
            try JPEG.withoutPosition.write(to: photo)
            let (tool, agent) = (Home.product("stormy"), Home.product("background-agent"))
            let script = """
                mount -t tmpfs none /run || exit 9
                /lib/systemd/systemd-journald & journal=$!
                for i in $(seq 1200); do [ -S /run/systemd/journal/socket ] && break; sleep 0.1; done
                # The daily check keeps the agent between two commands, however long these take to start.
                STORMY_NO_AGENT=1 '\(tool)' schedule >&2
                systemd-cat sh -c 'export JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/2); exec "\(agent)" --app stormy' &
                for i in $(seq 1200); do journalctl -q BACKGROUND_EVENT=agent-started | grep -q started && break; sleep 0.1; done
                '\(tool)' download --wait '\(server.url)/gone?signature=secret' -o '\(home.folder.path)/x' >&2
                '\(tool)' upload --wait '\(photo.path)' >&2
                '\(tool)' quit >&2
                for i in $(seq 1200); do journalctl -q BACKGROUND_EVENT=agent-stopped | grep -q stopped && break; sleep 0.1; done
                journalctl -o json BACKGROUND_APP=stormy
                kill $journal
                """
            let result = try Child.run("unshare", Namespaces.withOwnMounts(script), environment: home.environment)
            let rows = result.output.split(separator: "\n").compactMap {
                try? JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: String]
            }
            let ends = rows.filter { $0["BACKGROUND_EVENT"] == "transfer-ended" }
            #expect(ends.map { $0["BACKGROUND_KIND"] } == ["download", "upload"], "\(result)")
            #expect(ends.map { $0["BACKGROUND_OUTCOME"] } == ["failed", "failed"])
            #expect(ends.allSatisfy { $0["BACKGROUND_HOST"] == server.url && $0["MESSAGE"] == "transfer ended" }, "\(ends)")
            #expect(rows.first?["BACKGROUND_EVENT"] == "agent-started" && rows.last?["BACKGROUND_EVENT"] == "agent-stopped")
            #expect(!result.output.contains("secret") && !result.output.contains("hunter2"))
            #expect(home.log.isEmpty, "\(home.log)")
        }
    }
}
