import BackgroundLedger
import FaultyServer
import Foundation

// The work that is under way when something happens, and what can be seen of it afterwards.
extension Rehearsal {
    // MARK: Checks

    /// A check whose forecast has half arrived.
    func beginCheck() throws {
        serveForecast()
        try launchCheck()
        try waitForRequest("/v1/forecast")
    }

    func launchCheck() throws {
        try home.stormy("place", "add", "Storm Bay", "-43.1,147.5", "--no-sync")
        try home.stormy("schedule")
        try home.stormy("simulate", "launch", "StormyNoon")
    }

    /// The same, and its time is over: the download lives on without it.
    func beginHandedOver() throws {
        try beginCheck()
        try home.stormy("simulate", "expire", "StormyNoon")
        try waitForExpiry()
    }

    func waitForExpiry() throws {
        _ = try wait("the check to end") { try $0.history(limit: 10).first { $0.outcome == .expired } }
    }

    /// Launches in their order, requests for the forecast, storms told.
    func seenOfCheck() throws -> String {
        try settle()
        let (launches, notices) = try ledger { transaction in
            (try transaction.history(limit: 50), try transaction.notifications().filter { $0.identifier.hasPrefix("storm-") })
        }
        let words = launches.sorted { ($0.startedAt, $0.id!) < ($1.startedAt, $1.id!) }.map { launch in
            let name = launch.kind == .appRefresh ? "check" : launch.kind == .urlSession ? "delivery" : launch.kind.rawValue
            return "\(name) \(launch.outcome?.rawValue ?? "running")"
        }
        return (words.isEmpty ? "no check" : words.joined(separator: ", "))
            + "; \(count(forecastRequests, "request")); \(count(notices.count, "storm")) told"
    }

    // MARK: Downloads

    /// More than half of a file is here.
    func beginDownload(_ options: String...) throws {
        try home.stormy(["download", server.url + "/file", "-o", place.path] + options)
        _ = try wait("the first half") { transaction in
            try transaction.transfers().first { $0.kind == .download && ($0.partial?.durableBytes ?? $0.bytesDone) > 8 << 20 }
        }
    }

    var place: URL { home.folder.appendingPathComponent("file") }

    /// The transfer's end, what is at its place, and how the second request asked.
    func seenOfDownload() throws -> String {
        try settle()
        let transfer = try ledger { try $0.transfers().first { $0.kind == .download } }
        let names = try FileManager.default.contentsOfDirectory(atPath: home.folder.path)
        var words = [transfer?.state.rawValue ?? "no transfer"]
        if let digest = try? FileDigest.sha256(of: place).digest {
            let version = ["one", "two"].first { name in
                (try? FileDigest.sha256(of: home.folder.appendingPathComponent("version-\(name)")).digest) == digest
            }
            words.append(version.map { "version \($0), whole" } ?? "OTHER BYTES")
        } else {
            words.append(names.contains { $0.hasPrefix(".file") } ? "a part" : "no file")
        }
        let asked = fileRequests.map { $0.headers["Range"] == nil ? "the whole" : "the rest" }
        if asked.first == "the rest" {
            words.append("the new server asked for " + asked.joined(separator: ", "))
        } else {
            words.append(asked.count == 1 ? "asked once" : "then asked for " + asked.dropFirst().joined(separator: ", "))
        }
        return words.joined(separator: "; ")
    }

    // MARK: Uploads

    /// A photo of which the server took a part, and then no more.
    /// - Parameter stalls: `false`: nothing keeps it.
    func beginUpload(stalls: Bool = true, _ options: String...) throws {
        if stalls { photos.stallUploads(afterBytes: 100_000) }
        if !FileManager.default.fileExists(atPath: photo.path) {
            try (Data("BM".utf8) + Data((0..<Self.photoSize).map { UInt8(truncatingIfNeeded: $0 * 31 >> 4) })).write(to: photo)
        }
        try home.stormy(["upload", photo.path] + options)
        guard stalls else { return }
        try waitForRequest("/photos/.")
    }

    var photo: URL { home.folder.appendingPathComponent("storm.bmp") }

    /// The transfer's end, and what the server has.
    func seenOfUpload() throws -> String {
        try settle()
        let states = try ledger { try $0.transfers().filter { $0.kind == .upload }.map(\.state.rawValue) }
        // A request that the server reads no further from is open for it until then, and its part with it.
        dropConnections()
        let files = photos.files
        let original = (try? Data(contentsOf: photo)) ?? kept
        let isEqual = files.allSatisfy { photos.contents(of: $0) == original }
        let left = photos.unfinishedUploads
        return states.joined(separator: ", ") + "; \(count(files.count, "photo")) there"
            + (files.isEmpty ? "" : isEqual ? ", equal" : ", DIFFERENT")
            + (left == 0 ? "" : "; \(count(left, "part")) left behind")
    }

    /// What the photo was, where it was taken away.
    private var kept: Data? { try? Data(contentsOf: home.folder.appendingPathComponent("kept.bmp")) }

    /// The person deletes the original.
    func deleteOriginal() throws {
        try FileManager.default.moveItem(at: photo, to: home.folder.appendingPathComponent("kept.bmp"))
    }

    // MARK: Looking

    func ledger<Value>(_ body: (LedgerTransaction) throws -> Value) throws -> Value { try Ledger(home.directories).read(body) }

    func count(_ number: Int, _ noun: String) -> String { "\(number) \(noun)\(number == 1 ? "" : "s")" }
}
