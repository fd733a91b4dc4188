import BackgroundCommands
import Spool
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
        try verb("place", "add", "Storm Bay", "-43.1,147.5", "--no-sync")
        try verb("schedule")
        try verb("simulate", "launch", "StormyNoon")
    }

    /// The same, and its time is over: the download lives on without it.
    func beginHandedOver() throws {
        try beginCheck()
        try verb("simulate", "expire", "StormyNoon")
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

    /// More than half of a file is here, under another name.
    func beginDownload(_ options: String...) throws {
        try verb(["download", server.url + "/file", "-o", place.path] + options)
        _ = try wait("the first half") { transaction in
            try transaction.transfers().first { $0.kind == .download && ($0.partial?.durableBytes ?? $0.bytesDone) > 8 << 20 }
        }
        guard !FileManager.default.fileExists(atPath: place.path), try hasPart() else {
            throw Stuck(description: "half of the file has its name")
        }
    }

    /// From a server that says who it is, wrongly.
    func beginDownload(showing certificate: ServerCertificate) throws {
        server.greet(with: .https(certificate))
        serveWholeFile(on: server)
        try verb(["download", server.secureURL + "/file", "-o", place.path])
    }

    /// Why a server was not trusted.
    func seenOfDistrust() throws -> String {
        seenOfError("certificate", of: try ledger { try $0.transfers().first { $0.kind == .download } })
            + "; \(try seenOfSuspicion())"
    }

    /// Something may stand in the server's place: the transfer waits for that to change.
    func waitForSuspicion() throws {
        _ = try wait("what is suspected") { try $0.unfinishedTransfers().contains(where: Self.isSuspicious) ? true : nil }
    }

    /// Another network.
    func comeToTheRightNetwork() throws {
        try control.set { $0.conditions.isNetworkAvailable = false }
        try sync()
        try control.set { $0.conditions.isNetworkAvailable = true }
        // What waits there until then looks as settled as it did before.
        _ = try wait("another try") { try $0.unfinishedTransfers().contains(where: Self.isSuspicious) ? nil : true }
    }

    /// What the person was told of it.
    func seenOfSuspicion() throws -> String {
        let told = try ledger { try $0.notifications().filter { $0.identifier.hasPrefix("background-agent.notice.") }.count }
        return told == 0 ? "NOT told" : told == 1 ? "told once" : "told \(told) TIMES"
    }

    /// Whether a transfer's error says what it is about.
    private func seenOfError(_ reason: String, of transfer: TransferRecord?) -> String {
        transfer?.errorMessage?.contains(reason) == true ? "names the \(reason)" : "NAMES NO REASON"
    }

    private func hasPart() throws -> Bool {
        try FileManager.default.contentsOfDirectory(atPath: home.folder.path).contains { $0.hasPrefix(".file") }
    }

    /// Nothing of it goes on until somebody says so.
    func lookForPause() throws {
        try look()
        guard try ledger({ try $0.unfinishedTransfers().allSatisfy { $0.state == .paused } }) else {
            throw Stuck(description: "it does not wait")
        }
    }

    /// The same of a download, which waits with what is here of it.
    func lookForPausedPart() throws {
        try lookForPause()
        guard try hasPart() else { throw Stuck(description: "its part is gone") }
    }

    var place: URL { home.folder.appendingPathComponent("file") }

    /// The transfer's end, what is at its place, and how the second request asked.
    func seenOfDownload() throws -> String {
        try settle()
        let transfer = try ledger { try $0.transfers().first { $0.kind == .download } }
        var words = [transfer?.state.rawValue ?? "no transfer"]
        if let digest = try? FileDigest.sha256(of: place).digest {
            let version = ["one", "two"].first { name in
                (try? FileDigest.sha256(of: home.folder.appendingPathComponent("version-\(name)")).digest) == digest
            }
            words.append(version.map { "version \($0), whole" } ?? "OTHER BYTES")
        } else {
            words.append(try hasPart() ? "a part" : "no file")
        }
        let asked = fileRequests.map { $0.headers["Range"] == nil ? "the whole" : "the rest" }
        if asked.first == "the rest" {
            words.append("the new server asked for " + asked.joined(separator: ", "))
        } else if asked.isEmpty {
            words.append("never asked")
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
        if !FileManager.default.fileExists(atPath: photo.path) { try Self.photoBytes.write(to: photo) }
        try verb(["upload", photo.path] + options)
        guard stalls else { return }
        try waitForRequest("/photos/.")
    }

    /// Another file is given before the photo, and a file that does not exist after it.
    /// - Parameter failure: How the command ends: as the first file has it.
    func beginUpload(behind file: String, ending failure: ExitStatus) throws {
        try Self.photoBytes.write(to: photo)
        try verb(["upload", inHome(file), photo.path, inHome("last.jpg")], ending: failure)
    }

    func inHome(_ name: String) -> String { home.folder.appendingPathComponent(name).path }

    /// A file whose location the cleaner finds and cannot remove, because it does not know the format.
    func makeHeldPhoto(_ name: String) throws {
        let properties = #"<rdf:Description xmlns:exif="http://ns.adobe.com/exif/1.0/" exif:GPSLatitude="47,22.5N"/>"#
        try (Self.photoBytes + Data(properties.utf8)).write(to: URL(fileURLWithPath: inHome(name)))
    }

    /// Nobody can read it, not even root: a link to itself.
    func makeUnreadablePhoto(_ name: String) throws {
        try FileManager.default.createSymbolicLink(atPath: inHome(name), withDestinationPath: inHome(name))
    }

    /// Photos that `transfers` lists as held.
    func seenOfHeld() throws -> String {
        let rows = try JSONSerialization.jsonObject(with: verb("transfers", "--json")) as? [[String: Any]] ?? []
        return "\(rows.count { $0["state"] as? String == "held" }) held"
    }

    /// The transfer waits because its file cannot be used.
    func waitForDisk(_ reason: String) throws {
        _ = try wait("a photo that waits for the disk") { transaction in
            try transaction.transfers().first { $0.state == .waiting && $0.errorMessage?.contains(reason) == true }
        }
    }

    /// The upload has ended, and the launch that was to hear of it died.
    func waitForLostDelivery() throws {
        _ = try wait("a delivery to crash") {
            try $0.history(limit: 10).first { $0.kind == .urlSession && $0.outcome == .crashed }
        }
    }

    var photo: URL { home.folder.appendingPathComponent("storm.bmp") }

    private static let photoBytes =
        Data("BM".utf8) + Data((0..<photoSize).map { UInt8(truncatingIfNeeded: $0 * 31 >> 4) })

    /// Somebody else's file has the photo's name on the server.
    func takeName() throws {
        try Self.othersBytes.write(to: home.folder.appendingPathComponent("received/storm.bmp"))
    }

    private static let othersBytes = Data("another's".utf8)

    /// The transfer's end, each file that the server has, and how often the photo was sent.
    func seenOfUpload() throws -> String {
        try settle()
        let states = try ledger { try $0.transfers().filter { $0.kind == .upload }.map(\.state.rawValue) }
        // A request that the server reads no further from is open for it until then, and its part with it.
        dropConnections()
        let (ours, others) = (FileDigest.sha256(of: Self.photoBytes), FileDigest.sha256(of: Self.othersBytes))
        let files = photos.files.map { path -> String in
            let digest = photos.contents(of: path).map { FileDigest.sha256(of: $0) }
            let state = digest == ours ? "whole" : digest == others ? "another's" : "with OTHER BYTES"
            return "\(path.dropFirst()) \(state)"
        }
        var words = [states.joined(separator: ", "), files.isEmpty ? "nothing there" : files.joined(separator: ", ")]
        let left = photos.unfinishedUploads
        if left > 0 { words.append("\(count(left, "part")) left behind") }
        let sent = sendings.count
        words.append(sent == 0 ? "not sent" : sent == 1 ? "sent once" : sent == 2 ? "sent twice" : "sent \(sent) times")
        return words.joined(separator: "; ")
    }

    /// Requests that carried it.
    private var sendings: [RecordedRequest] { photoRequests.filter { $0.method == "PUT" } }

    /// How each of them ended, as the server says.
    func seenOfSendings() -> String { sendings.map(\.outcome.rawValue).joined(separator: ", then ") }

    /// What the server was asked about the photo from its first sending on.
    func seenOfNaming() -> String {
        let requests = photoRequests.drop { $0.method != "PUT" }
        guard let part = requests.first?.path, part.hasPrefix("/photos/.") else { return "NOT SENT UNDER ANOTHER NAME" }
        let words = requests.map { request -> String in
            let place = request.path == part ? "part" : request.path == "/photos/storm.bmp" ? "photo" : "OTHER FILE"
            switch request.method {
            case "PUT": return "\(place) sent"
            case "MOVE": return "\(place) named" + (request.outcome == .answered ? "" : " without an answer")
            case "HEAD", "PROPFIND": return "\(place) looked at"
            default: return "\(request.method) of the \(place)"
            }
        }
        return words.joined(separator: ", ")
    }

    /// What is left here of a photo that could not be sent, and why.
    func seenOfRefusal() throws -> String {
        let transfer = try ledger { try $0.transfers().first { $0.kind == .upload } }
        let copy = transfer?.bodyFile.map { home.directories.spool.appendingPathComponent($0) }
        let isHere = try [photo, copy].allSatisfy { place in
            try place.map { try Data(contentsOf: $0) == Self.photoBytes } ?? false
        }
        return "\(seenOfError("password", of: transfer)); photo and copy are \(isHere ? "" : "NOT ")here"
    }

    /// The person deletes the original.
    func deleteOriginal() throws {
        try FileManager.default.removeItem(at: photo)
    }

    // MARK: Looking

    func ledger<Value>(_ body: (LedgerTransaction) throws -> Value) throws -> Value { try home.ledger().read(body) }

    func count(_ number: Int, _ noun: String) -> String { "\(number) \(noun)\(number == 1 ? "" : "s")" }
}
