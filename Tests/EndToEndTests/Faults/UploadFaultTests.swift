import Spool
import BackgroundLedger
import FaultyServer
import Foundation
import TestSamples
import Testing

extension EndToEnd {
    /// Each way of uploading × each fault of its server has the end that is promised: the photo there, once and whole; a clear
    /// failure; or a visible wait. Also when the agent is killed on the way.
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
        /// By their sizes.
        private let photos: [Int: (file: URL, bytes: Data)]
        private var runs: [Run] = []

        init() async throws {
            server = try await FaultyServer.start()
            let folder = TestFolder.shared.appendingPathComponent(UUID().uuidString)
            let secrets = folder.appendingPathComponent("secret")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            try Data(ImmichStore.key.utf8).write(to: secrets)
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: secrets.path)
            // The table is about servers. A debug build needs seconds to search the large photos for a location.
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

        @Test func everyFaultHasItsPromisedEnd() throws {
            let runs = try queue(runs)
            let agent = try home.startAgent()
            defer { agent.end() }
            var rows: [String] = []
            for run in runs {
                let record = try home.wait(run.name, seconds: 60) { try settled(run, $0) }
                check(run, record)
                rows.append(row(run, record))
            }
            try UploadFaultPage.compare(rows)
        }

        /// The agent dies again and again, each time at the next of these points; every fault ends as promised all the same.
        @Test(arguments: ["agent.transferStarting", "agent.transferEnded", "agent.transferCommitting"])
        func soItDoesOverAgentsThatDie(_ point: String) throws {
            let runs = try queue(TableSample.rows(of: runs, in: point))
            for crash in [1, 3, 7, 15, 20] {
                try home.startAgent(["BACKGROUND_CRASH_AT": "\(point):\(crash)"]).waitForEnd()
            }
            let agent = try home.startAgent()
            defer { agent.end() }
            for run in runs {
                let record = try home.wait("\(run.name) after \(point)", seconds: 60) { try settled(run, $0) }
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

        /// - Parameter mayFinishLate: an agent that died before it read a refusal may have sent a form twice.
        private func check(_ run: Run, _ record: TransferRecord, mayFinishLate: Bool = false) {
            let (photo, bytes) = photos[run.way.size]!
            let there = UploadWay.photos(in: run.store)
            let text = "\(run.name): \(record.state) \(record.errorCode ?? 0) \(record.errorMessage ?? ""), \(there.count) there"
            var promise = run.fault.promise(run.way)
            // A fault that comes once may have come to an agent that never told anybody.
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
            // The photo stays with the person, and its copy as long as it can be of use.
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
            case .there: outcome = "there, once"
            case .thereMaybeTwice: outcome = "there, twice: the server cannot be asked"
            case .failed: outcome = "fails: \(message)"
            case .waiting: outcome = "waits and tries again: \(message)"
            }
            return "| \(run.way.rawValue) | \(run.fault.name) | \(outcome) | \(requests) | \(again(run, carried)) |"
        }

        /// Bytes that went out although the server had them, or had been sent them before.
        private func again(_ run: Run, _ carried: Int) -> String {
            guard let taken = UploadWay.bytesTaken(by: run.store), run.way != .s3, run.way != .nextcloud else {
                return carried > 1 ? "all" : "none"
            }
            guard carried > 1 else { return "none" }
            let more = taken - run.way.size
            // A list of parts is not the photo's.
            guard more > run.way.size / 100 else { return "none that the server had" }
            return more >= run.way.size ? "all: it had thrown them away" : "\(more * 100 / run.way.size) %"
        }
    }
}

/// The page in the documentation is what was seen. `WRITE_TABLES=1` writes it.
private enum UploadFaultPage {
    static let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Sources/API/BackgroundTransfer/BackgroundTransfer.docc/UploadFaults.md")

    static func compare(_ rows: [String]) throws {
        let page = """
            # Faults of servers that take uploads, and how they end

            What a photo's upload comes to when its server fails, for each way of uploading.

            Written by the test that holds it: `WRITE_TABLES=1 swift test --filter EndToEnd.UploadFaults.everyFault`. Each fault
            comes once unless it says otherwise, to the request that carries the bytes. The same holds when the agent is killed on
            the way, by the test beside it.

            | way | fault | end | requests | bytes sent again |
            | --- | --- | --- | --- | --- |

            """ + rows.joined(separator: "\n") + "\n"
        if ProcessInfo.processInfo.environment["WRITE_TABLES"] != nil { return try Data(page.utf8).write(to: file) }
        let written = ((try? String(contentsOf: file, encoding: .utf8)) ?? "").split(separator: "\n")
        let seen = page.split(separator: "\n")
        for (line, other) in zip(written, seen) where line != other { Issue.record("the page says: \(line)\nseen: \(other)") }
        #expect(written.count == seen.count, "WRITE_TABLES=1 writes the page anew")
    }
}
