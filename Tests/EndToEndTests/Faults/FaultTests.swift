import Spool
import BackgroundLedger
import CLinux
import FaultyServer
import Foundation
import TestSamples
import Testing

extension EndToEnd {
    /// Tests that each fault has its promised result: the complete file, a clear failure, or a visible wait. The result must not
    /// change if the agent is killed at any point.
    @Suite struct Faults {
        let server: FaultyServer
        let home: Home
        let folder: URL

        init() async throws {
            server = try await FaultyServer.start()
            home = try Home()
            home.environment["BACKGROUND_RETRY_BASE"] = "0.05"
            folder = home.folder.appendingPathComponent("downloads")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            home.environment["STORMY_NO_AGENT"] = "1"
            _ = try home.stormy("place", "list")
        }

        // MARK: The table

        @Test func `every fault has its promised end`() throws {
            let runs = try Fault.all.map { ($0, try queue($0, path: "/\(UUID().uuidString)")) }
            let agent = try startAgent()
            defer { agent.end(SIGKILL) }
            let ends = try runs.map { fault, run in
                (fault, run, try home.wait(fault.name) { try settled(fault, run.id, $0) })
            }
            // The agent removes files after the commit. If an agent ended after SIGTERM, it has removed these files.
            agent.end(SIGTERM)
            var rows: [String] = []
            for (fault, run, record) in ends {
                check(fault, record)
                rows.append(row(fault, record, run))
            }
            try FaultPage.compare(rows)
        }

        // MARK: Killed agents

        static let points = [
            "agent.transferStarting", "agent.transferHead", "agent.transferPrepared", "agent.transferSynced",
            "agent.transferEnded", "agent.transferProven", "agent.transferPlacing", "agent.transferPlaced",
            "agent.transferCommitting",
        ]

        @Test(arguments: points) func `faults still end as promised if the agent is killed`(_ point: String) throws {
            for fault in TableSample.rows(of: Fault.all, in: point) {
                let run = try queue(fault, path: "/\(UUID().uuidString)")
                let cursed = try startAgent(["BACKGROUND_CRASH_AT": "\(point)#\(run.id)"])
                let early = try waitForEnd(of: cursed, or: { try settled(fault, run.id, $0) })
                cursed.end(early == nil ? SIGKILL : SIGTERM)
                if early == nil {
                    let agent = try startAgent()
                    let record = try home.wait("\(fault.name) after \(point)") { try settled(fault, run.id, $0) }
                    agent.end(SIGTERM)
                    check(fault, record, after: point)
                } else if let early {
                    check(fault, early, after: point)
                }
                // The transfer is cancelled, because a waiting transfer would disturb the test of the next fault.
                try Ledger(home.directories).write { transaction in
                    try transaction.handle(.cancelled(message: nil, now: Date()), transfer: run.id, now: Date())
                }
            }
        }

        // MARK: Helpers

        private struct Run {
            let id: Int64
            let path: String
            let file: URL
        }

        private func queue(_ fault: Fault, path: String) throws -> Run {
            server.route("GET", path, fault.scripts(server))
            let file = folder.appendingPathComponent(String(path.dropFirst()) + ".bin")
            var record = TransferRecord(
                session: "Faults", key: path, kind: .download, method: "GET", url: fault.url?(server) ?? server.url + path,
                headers: [], now: Date())
            _ = record.handle(.adopted(suspended: false))
            record.launchesApp = false
            record.destination = file.path
            record.hostLimit = 16
            fault.change(&record)
            let wanted = record
            let id = try Ledger(home.directories).write { try $0.insert(wanted).id }
            return Run(id: try #require(id), path: path, file: file)
        }

        private func startAgent(_ variables: [String: String] = [:]) throws -> Child {
            let log = open(home.directories.agentLog.path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
            defer { close(log) }
            return try Child(
                Home.product("background-agent"), ["--app", "stormy"],
                environment: home.environment.merging(variables) { $1 }, output: log)
        }

        /// Returns the transfer if no further change of the transfer is expected.
        private func settled(_ fault: Fault, _ id: Int64, _ transaction: LedgerTransaction) throws -> TransferRecord? {
            guard let record = try transaction.transfer(id) else { return nil }
            if record.state.isTerminal { return record }
            guard case .waiting(let code) = fault.promise, record.state == .waiting, record.errorCode == code else { return nil }
            return record
        }

        private func waitForEnd(
            of child: Child, or question: (LedgerTransaction) throws -> TransferRecord?
        ) throws -> TransferRecord? {
            let ledger = try Ledger(home.directories)
            let bell = try ChangeListener(home.directories)
            let process = clinux_pidfd_open(child.pid)
            defer { close(process) }
            while true {
                if let record = try ledger.readAfterRing(question) { return record }
                var pollers = [
                    pollfd(fd: bell.descriptor, events: Int16(POLLIN), revents: 0),
                    pollfd(fd: process, events: Int16(POLLIN), revents: 0),
                ]
                let count = poll(&pollers, 2, 60_000)
                guard count > 0 else { throw Home.TimedOut(description: "neither an end nor a crash in 60 s\n\(home.log)") }
                if pollers[1].revents != 0 { return nil }
                bell.drain()
            }
        }

        private func check(_ fault: Fault, _ record: TransferRecord, after point: String = "") {
            let found = record.destination.flatMap { FileManager.default.contents(atPath: $0) }
            let text =
                "\(fault.name) \(point): \(record.state) \(record.errorCode ?? 0) \(record.errorMessage ?? record.note ?? "")"
            switch fault.promise {
            case .whole(let payload):
                #expect(record.state == .completed, "\(text)")
                #expect(found == payload.data, "\(text)")
                #expect(record.sha256 == FileDigest.sha256(of: payload.data), "\(text)")
            case .failed(let code):
                #expect(record.state == .failed && record.errorCode == code, "\(text)")
                #expect(found == nil, "\(text)")
            case .waiting(let code):
                #expect(record.state == .waiting && record.errorCode == code, "\(text)")
                #expect(found == nil, "\(text)")
                // The pause is limited, even if the server requests a longer pause.
                #expect(record.nextAttemptAt.map { $0.timeIntervalSinceNow <= 6 * 3600 } == true, "\(text)")
            }
            // A partial file is kept only if the download can continue from it.
            let isKept = record.keptUntil != nil || !record.state.isTerminal
            let part = record.partFile(in: home.directories.spool)?.path
            if let part, !isKept { #expect(!FileManager.default.fileExists(atPath: part), "\(text)") }
        }

        private func row(_ fault: Fault, _ record: TransferRecord, _ run: Run) -> String {
            let count = server.requests(matching: run.path).count
            let requests = count == 1 ? "1 request" : "\(count) requests"
            switch fault.promise {
            case .whole:
                let fresh = "the download began at byte 0"
                let handedOver = "all bytes were received on the first connection"
                let how = record.note.map { $0 == handedOver ? fresh : $0 } ?? ""
                let what = fault.promisesFile ? "The file" : "The body that the server sent"
                return "| \(fault.name) | \(what) is complete after \(requests) (\(how)). |"
            case .failed: return "| \(fault.name) | The download fails: \(record.errorMessage ?? "") |"
            case .waiting: return "| \(fault.name) | The download waits and is tried again: \(record.errorMessage ?? "") |"
            }
        }
    }
}

extension Fault {
    /// `true` if the result is the file of the server; `false` if the result is another body that the server sent.
    fileprivate var promisesFile: Bool { !name.hasPrefix("a captive portal") && !name.contains("compressed") }
}

/// Compares the page of faults in the documentation with the results of the test.
private enum FaultPage {
    static let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Sources/API/BackgroundTransfer/BackgroundTransfer.docc/Faults.md")

    private static let head = """
        # Faults of servers and networks, and the results of downloads

        Lists faults of servers and networks, and the result of a download for each fault. The agent is the process that runs the transfers of an
        app. For each row of the table, a test runs a real agent and a server with the fault.

        The command `WRITE_TABLES=1 swift test --filter EndToEnd.Faults` runs the test, and writes this page. Without the variable `WRITE_TABLES`,
        the test compares the results with this page. Another test kills the agent with the command `kill -9` at each of nine points during each
        download. The results of the two tests must be equal.

        Each download in these tests has a destination, which is the path of the downloaded file. A file is complete when the length of the file and
        every known digest are correct. The agent then syncs the file to the disk, gives the file its final name in one step, and syncs the folder. A
        waiting download fails if no new byte arrives for 7 days. The session's configuration can set another time (the resource timeout).

        | What the server or the network does | Result of the download |
        | --- | --- |

        """

    static func compare(_ rows: [String]) throws {
        let text = head + rows.joined(separator: "\n") + "\n"
        if ProcessInfo.processInfo.environment["WRITE_TABLES"] != nil { try Data(text.utf8).write(to: file) }
        let page = (try? String(contentsOf: file, encoding: .utf8)) ?? ""
        for (written, seen) in zip(page.split(separator: "\n"), text.split(separator: "\n")) where written != seen {
            Issue.record("the page says: \(written)\nseen: \(seen)")
        }
        #expect(page.split(separator: "\n").count == text.split(separator: "\n").count)
    }
}
