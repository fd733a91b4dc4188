import Spool
import BackgroundLedger
import FaultyServer
import Foundation
import TestSamples
import Testing

extension EndToEnd {
    /// Tests that each fault has its promised result for each kind of destination: one complete photo, a clear failure, or a
    /// visible wait. The result does not change if the agent is killed.
    @Suite struct UploadFaults {
        private struct Run {
            let fault: UploadFault
            let way: UploadWay
            let store: any UploadStore
            let destination: String
            var id: Int64 = 0

            var name: String { "\(way.rawValue), \(fault.name)" }
        }

        private let server: FaultyServer
        private let home: Home
        /// The photos, by size.
        private let photos: [Int: (file: URL, bytes: Data)]
        private var runs: [Run] = []

        init() async throws {
            server = try await FaultyServer.start()
            let folder = TestFolder.shared.appendingPathComponent(UUID().uuidString)
            let secrets = folder.appendingPathComponent("secret")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            try Data(ImmichStore.key.utf8).write(to: secrets)
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: secrets.path)
            // The photos keep their location, because this test is only about servers. A debug build needs seconds to search a
            // large photo for a location.
            var configuration = "[upload]\nkeep_location = true\n"
            for way in UploadWay.allCases {
                for (number, fault) in UploadFault.all.enumerated() where fault.ways.contains(way) {
                    let name = "\(way.rawValue.filter { $0.isLetter || $0.isNumber })-\(number)"
                    let prefix = "/\(name)"
                    let store = try way.makeStore(prefix: prefix, in: folder)
                    server.mount(store)
                    fault.apply(store, way)
                    runs.append(Run(fault: fault, way: way, store: store, destination: name))
                    configuration += """
                        [upload.destinations.\(name)]
                        kind = "\(way.kind)"
                        \(way.lines("\(server.url)\(prefix)", secrets: secrets))

                        """
                }
            }
            home = try Home(extra: configuration)
            home.environment["STORMY_NO_AGENT"] = "1"
            home.environment["BACKGROUND_RETRY_BASE"] = "0.05"
            var photos: [Int: (file: URL, bytes: Data)] = [:]
            for size in Set(UploadWay.allCases.map(\.size)) {
                let bytes = Data([0xFF, 0xD8, 0xFF]) + Data((3..<size).map { UInt8(truncatingIfNeeded: $0 ^ $0 >> 7) })
                let file = home.folder.appendingPathComponent("noon 12:00 \(size).jpg")
                try bytes.write(to: file)
                photos[size] = (file, bytes)
            }
            self.photos = photos
        }

        private func queue(_ runs: [Run]) throws -> [Run] {
            try runs.map { run in
                let queued = try home.stormy("upload", "--json", "--to", run.destination, photos[run.way.size]!.file.path)
                try #require(queued.status == 0, "\(queued.errors)")
                let rows = try JSONSerialization.jsonObject(with: Data(queued.output.utf8)) as? [[String: Any]] ?? []
                var queuedRun = run
                queuedRun.id = try #require((rows.first?["id"] as? String).flatMap { Int64($0) }, "\(queued)")
                return queuedRun
            }
        }

        @Test func `every fault has its promised end`() throws {
            let runs = try queue(runs)
            let agent = try home.startAgent()
            defer { agent.end() }
            var rows: [String] = []
            for run in runs {
                let record = try home.wait(run.name) { try settled(run, $0) }
                check(run, record)
                rows.append(row(run, record))
            }
            try UploadFaultPage.compare(rows)
        }

        /// Several agents are killed, one after the other. Each agent is killed at a later occurrence of the kill point.
        @Test(arguments: ["agent.transferStarting", "agent.transferEnded", "agent.transferCommitting"])
        func `faults still end as promised if agents are killed`(_ point: String) throws {
            let runs = try queue(TableSample.rows(of: runs, in: point))
            for crash in [1, 3, 7, 15, 20] {
                try home.startAgent(["BACKGROUND_CRASH_AT": "\(point):\(crash)"]).waitForEnd()
            }
            let agent = try home.startAgent()
            defer { agent.end() }
            for run in runs {
                let record = try home.wait("\(run.name) after \(point)") { try settled(run, $0) }
                check(run, record, mayFinishLate: true)
            }
        }

        private func settled(_ run: Run, _ transaction: LedgerTransaction) throws -> TransferRecord? {
            guard let record = try transaction.transfer(run.id) else { return nil }
            if record.state.isTerminal { return record }
            guard case .waiting(let code) = run.fault.promise(run.way), record.state == .waiting, record.errorCode == code
            else { return nil }
            return record
        }

        /// - Parameter mayFinishLate: Whether an agent was killed. If an agent was killed, a form may have been sent twice before
        ///   an agent read the error response.
        private func check(_ run: Run, _ record: TransferRecord, mayFinishLate: Bool = false) {
            let (photo, bytes) = photos[run.way.size]!
            let there = UploadWay.photos(in: run.store)
            let text = "\(run.name): \(record.state) \(record.errorCode ?? 0) \(record.errorMessage ?? ""), \(there.count) there"
            var promise = run.fault.promise(run.way)
            // A fault that occurs only once may have occurred while the killed agent was running. The next agent then completes
            // the upload.
            let mayBeThere = mayFinishLate && record.state == .completed
            if mayBeThere { promise = run.way == .multipart ? .thereMaybeTwice : .there }
            switch promise {
            case .there, .thereMaybeTwice:
                #expect(record.state == .completed, "\(text)")
                #expect(there.allSatisfy { $0 == bytes }, "\(text)")
                #expect(promise == .there && run.way != .multipart ? there.count == 1 : !there.isEmpty, "\(text)")
                #expect(record.receipt?.sha256 == FileDigest.sha256(of: bytes), "\(text)")
                if let tus = run.store as? TusStore, !mayFinishLate { #expect(tus.bytesTaken <= bytes.count * 2, "\(text)") }
            case .failed(let code):
                #expect(record.state == .failed && record.errorCode == code, "\(text)")
                #expect(there.isEmpty, "\(text)")
            case .waiting(let code):
                #expect(record.state == .waiting && record.errorCode == code, "\(text)")
                #expect(there.isEmpty && record.nextAttemptAt != nil, "\(text)")
            }
            // The user's file is kept.
            #expect(FileManager.default.fileExists(atPath: photo.path))
        }

        private func row(_ run: Run, _ record: TransferRecord) -> String {
            let carried = server.requests().filter {
                ($0.path.hasPrefix(run.store.prefix + "/") || $0.path == run.store.prefix) && run.way.carries($0)
            }.count
            let requests = "\(run.way.method) × \(carried)"
            let message = (record.errorMessage ?? "").replacing(run.destination, with: "NAME")
            let outcome: String
            switch run.fault.promise(run.way) {
            case .there: outcome = "The photo is on the server once."
            case .thereMaybeTwice:
                outcome = "The photo is on the server twice, because the agent cannot check which files the server has."
            case .failed: outcome = "The upload fails: \(message)"
            case .waiting: outcome = "The upload waits and is tried again: \(message)"
            }
            return "| \(run.way.rawValue) | \(run.fault.name) | \(outcome) | \(requests) | \(again(run, carried)) |"
        }

        /// Returns a text about the number of bytes that were sent again.
        private func again(_ run: Run, _ carried: Int) -> String {
            guard let taken = UploadWay.bytesTaken(by: run.store), run.way != .s3, run.way != .nextcloud else {
                return carried > 1 ? "all" : "none"
            }
            guard carried > 1 else { return "none" }
            let more = taken - run.way.size
            // The number of sent bytes includes a request that lists the parts of the upload. The few bytes of this request do
            // not belong to the photo.
            guard more > run.way.size / 100 else { return "only bytes that the server did not have" }
            return more >= run.way.size ? "all, because the server had deleted the bytes" : "\(more * 100 / run.way.size) %"
        }
    }
}

/// Compares the page in the documentation with the results of the test. If `WRITE_TABLES=1` is set, the test writes the page.
private enum UploadFaultPage {
    static let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Sources/API/BackgroundTransfer/BackgroundTransfer.docc/UploadFaults.md")

    static func compare(_ rows: [String]) throws {
        let page = """
            # Faults of upload servers, and the results of uploads

            Lists faults of upload servers, and the result of an upload for each fault and each way of uploading. The agent is the process that runs
            the transfers of an app. In each row of the table, the agent uploads a photo to a server with the fault. The name of the destination is
            `NAME`.

            The command `WRITE_TABLES=1 swift test --filter EndToEnd.UploadFaults` runs the test of this page, and writes this page. Each fault occurs
            once, unless the table gives another number. Unless the table names another request, the fault occurs in the request that
            contains the bytes of the photo.

            Another test also kills the agent during the upload. The results of this test are equal to the results in the table, with two exceptions. An
            upload that fails in the table can succeed if the fault occurred before the agent was killed. A server with forms can also store the photo
            twice.

            | Way | Fault | Result | Requests with bytes of the photo | Bytes sent again |
            | --- | --- | --- | --- | --- |

            """ + rows.joined(separator: "\n") + "\n"
        if ProcessInfo.processInfo.environment["WRITE_TABLES"] != nil { return try Data(page.utf8).write(to: file) }
        let written = ((try? String(contentsOf: file, encoding: .utf8)) ?? "").split(separator: "\n")
        let seen = page.split(separator: "\n")
        for (line, other) in zip(written, seen) where line != other { Issue.record("the page says: \(line)\nseen: \(other)") }
        #expect(written.count == seen.count, "WRITE_TABLES=1 writes the page again")
    }
}
