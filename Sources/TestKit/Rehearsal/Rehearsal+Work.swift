import BackgroundCommands
import Spool
import BackgroundLedger
import FaultyServer
import Foundation

// The work that is running when an event happens, and the visible result of this work.
extension Rehearsal {
    // MARK: Checks

    /// Begins a check, and waits until the check has received half of its forecast.
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

    /// Begins a check, and waits until the time limit of the check is reached. The download of the check then continues in the
    /// agent.
    func beginHandedOverCheck() throws {
        try beginCheck()
        try verb("simulate", "expire", "StormyNoon")
        try waitForExpiry()
    }

    func waitForExpiry() throws {
        _ = try wait("the end of the check") { try $0.history(limit: 10).first { $0.outcome == .expired } }
    }

    /// Returns the launches in their order, the number of forecast requests, and the number of storm notifications.
    func seenOfCheck() throws -> String {
        try waitForAllWork()
        let (launches, notices) = try ledger { transaction in
            (try transaction.history(limit: 50), try transaction.notifications().filter { $0.identifier.hasPrefix("storm-") })
        }
        let words = launches.sorted { ($0.startedAt, $0.id!) < ($1.startedAt, $1.id!) }.map { launch in
            let name = launch.kind == .appRefresh ? "check" : launch.kind == .urlSession ? "delivery" : launch.kind.rawValue
            return "\(name) \(launch.outcome?.rawValue ?? "running")"
        }
        return (words.isEmpty ? "no check ran" : words.joined(separator: ", "))
            + "; \(count(forecastRequests, "forecast request")); \(count(notices.count, "storm notification"))"
    }

    // MARK: Downloads

    /// Begins a download, and waits until more than half of the file is stored under a temporary name.
    func beginDownload(_ options: String...) throws {
        try verb(["download", server.url + "/file", "-o", place.path] + options)
        _ = try wait("the first half") { transaction in
            try transaction.transfers().first { $0.kind == .download && ($0.partial?.durableBytes ?? $0.bytesDone) > 8 << 20 }
        }
        guard !FileManager.default.fileExists(atPath: place.path), try hasPart() else {
            throw Stuck(description: "the file is only half complete, but already has its final name")
        }
    }

    /// Begins a download from a server with a wrong certificate.
    func beginDownload(showing certificate: ServerCertificate) throws {
        server.greet(with: .https(certificate))
        serveWholeFile(on: server)
        try verb(["download", server.secureURL + "/file", "-o", place.path])
    }

    /// Returns the reported reason why a server was not trusted.
    func seenOfDistrust() throws -> String {
        seenOfError("certificate", of: try ledger { try $0.transfers().first { $0.kind == .download } })
            + "; \(try seenOfSuspicion())"
    }

    /// Waits until the agent suspects a captive portal, and the transfer is waiting for another network.
    func waitForSuspicion() throws {
        _ = try wait("a transfer with a suspicion") {
            try $0.unfinishedTransfers().contains(where: Self.isSuspicious) ? true : nil
        }
    }

    /// Moves to another network.
    func switchToWorkingNetwork() throws {
        try control.set { $0.conditions.isNetworkAvailable = false }
        try sync()
        try control.set { $0.conditions.isNetworkAvailable = true }
        // The state of the transfer is the same before and after the change of the network. The test therefore waits until the
        // agent has tried the transfer again.
        _ = try wait("another attempt") { try $0.unfinishedTransfers().contains(where: Self.isSuspicious) ? nil : true }
    }

    /// Returns the number of notifications that the user received about a suspected captive portal.
    func seenOfSuspicion() throws -> String {
        let told = try ledger { try $0.notifications().filter { $0.identifier.hasPrefix("background-agent.notice.") }.count }
        let words = told == 0 ? "NO notification was" : told == 1 ? "1 notification was" : "\(told) NOTIFICATIONS were"
        return words + " shown"
    }

    /// Returns whether the error of a transfer names the reason.
    private func seenOfError(_ reason: String, of transfer: TransferRecord?) -> String {
        transfer?.errorMessage?.contains(reason) == true ? "the error names the \(reason)" : "the error NAMES NO REASON"
    }

    private func hasPart() throws -> Bool {
        try FileManager.default.contentsOfDirectory(atPath: home.folder.path).contains { $0.hasPrefix(".file") }
    }

    /// Checks that all unfinished transfers are paused until the user resumes them.
    func checkAllPaused() throws {
        try waitForAgent()
        guard try ledger({ try $0.unfinishedTransfers().allSatisfy { $0.state == .paused } }) else {
            throw Stuck(description: "a transfer is not paused")
        }
    }

    /// Checks that a download is paused and keeps its received bytes.
    func checkPausedPart() throws {
        try checkAllPaused()
        guard try hasPart() else { throw Stuck(description: "the partial file is missing") }
    }

    var place: URL { home.folder.appendingPathComponent("file") }

    /// Returns the outcome of the transfer, the file at its destination, and whether the second request continued or restarted
    /// the download.
    func seenOfDownload() throws -> String {
        try waitForAllWork()
        let transfer = try ledger { try $0.transfers().first { $0.kind == .download } }
        var words = [transfer.map { "download \($0.state.rawValue)" } ?? "no download"]
        if let digest = try? FileDigest.sha256(of: place).digest {
            let version = ["one", "two"].first { name in
                (try? FileDigest.sha256(of: home.folder.appendingPathComponent("version-\(name)")).digest) == digest
            }
            words.append(version.map { "version \($0) of the file is complete" } ?? "the file has OTHER BYTES")
        } else {
            words.append(try hasPart() ? "a partial file is stored" : "no file is stored")
        }
        let asked = fileRequests.map { $0.headers["Range"] == nil ? "the complete file" : "the missing bytes" }
        if asked.first == "the missing bytes" {
            let requested = asked.joined(separator: ", then ")
            words.append("the agent requested \(requested) from the new server")
        } else if asked.isEmpty {
            words.append("the agent sent no request")
        } else {
            let repeated = asked.dropFirst().joined(separator: ", then ")
            words.append(asked.count == 1 ? "the agent sent 1 request" : "after the interruption the agent requested \(repeated)")
        }
        return words.joined(separator: "; ")
    }

    // MARK: Uploads

    /// Begins the upload of a photo. The server receives a part of the photo and then stalls.
    ///
    /// - Parameter stalls: `false` if the server does not stall.
    func beginUpload(stalls: Bool = true, _ options: String...) throws {
        if stalls { photos.stallUploads(afterBytes: 100_000) }
        if !FileManager.default.fileExists(atPath: photo.path) { try Self.photoBytes.write(to: photo) }
        try verb(["upload", photo.path] + options)
        guard stalls else { return }
        try waitForRequest("/photos/.")
    }

    /// Begins an upload of three files: another file, a photo, and a file that does not exist.
    ///
    /// - Parameter failure: The expected exit status of the command. The exit status depends on the first file.
    func beginUpload(behind file: String, ending failure: ExitStatus) throws {
        try Self.photoBytes.write(to: photo)
        try verb(["upload", inHome(file), photo.path, inHome("last.jpg")], ending: failure)
    }

    func inHome(_ name: String) -> String { home.folder.appendingPathComponent(name).path }

    /// Creates a photo whose location is found but cannot be removed, because the cleaner does not support the format.
    func makeHeldPhoto(_ name: String) throws {
        let properties = #"<rdf:Description xmlns:exif="http://ns.adobe.com/exif/1.0/" exif:GPSLatitude="47,22.5N"/>"#
        try (Self.photoBytes + Data(properties.utf8)).write(to: URL(fileURLWithPath: inHome(name)))
    }

    /// Creates a photo that no user can read, not even root. The photo is a symbolic link to itself.
    func makeUnreadablePhoto(_ name: String) throws {
        try FileManager.default.createSymbolicLink(atPath: inHome(name), withDestinationPath: inHome(name))
    }

    /// Returns the number of photos that `transfers` lists as held.
    func seenOfHeld() throws -> String {
        let rows = try JSONSerialization.jsonObject(with: verb("transfers", "--json")) as? [[String: Any]] ?? []
        return count(rows.count { $0["state"] as? String == "held" }, "photo") + " held"
    }

    /// Waits until the transfer is waiting because its file cannot be used.
    func waitForDisk(_ reason: String) throws {
        _ = try wait("a photo that waits for the disk") { transaction in
            try transaction.transfers().first { $0.state == .waiting && $0.errorMessage?.contains(reason) == true }
        }
    }

    /// Waits until the upload has ended, and the launch that should have received the outcome has crashed.
    func waitForLostDelivery() throws {
        _ = try wait("a crash of a delivery") {
            try $0.history(limit: 10).first { $0.kind == .urlSession && $0.outcome == .crashed }
        }
    }

    var photo: URL { home.folder.appendingPathComponent("storm.bmp") }

    private static let photoBytes =
        Data("BM".utf8) + Data((0..<photoSize).map { UInt8(truncatingIfNeeded: $0 * 31 >> 4) })

    /// Stores a file with the photo's name on the server, as another user would.
    func claimName() throws {
        try Self.othersBytes.write(to: home.folder.appendingPathComponent("received/storm.bmp"))
    }

    private static let othersBytes = Data("another's".utf8)

    /// Returns the outcome of the transfer, each file on the server, and the number of times that the photo was sent.
    func seenOfUpload() throws -> String {
        try waitForAllWork()
        let states = try ledger { try $0.transfers().filter { $0.kind == .upload }.map { "upload \($0.state.rawValue)" } }
        // If the server has stopped reading a request, the request stays open with its received bytes until the connection ends.
        dropConnections()
        let (ours, others) = (FileDigest.sha256(of: Self.photoBytes), FileDigest.sha256(of: Self.othersBytes))
        let files = photos.files.map { path -> String in
            let digest = photos.contents(of: path).map { FileDigest.sha256(of: $0) }
            let state = digest == ours ? "is complete" : digest == others ? "belongs to another user" : "has OTHER BYTES"
            return "\(path.dropFirst()) on the server \(state)"
        }
        var words = [states.joined(separator: ", "), files.isEmpty ? "no file is on the server" : files.joined(separator: ", ")]
        let left = photos.unfinishedUploads
        if left > 0 { words.append("\(left) parts of the photo are left on the server") }
        let sent = sendings.count
        let times = sent == 0 ? "not sent" : sent == 1 ? "sent once" : sent == 2 ? "sent twice" : "sent \(sent) times"
        words.append("the photo was \(times)")
        return words.joined(separator: "; ")
    }

    /// The requests that contained the photo.
    private var sendings: [RecordedRequest] { photoRequests.filter { $0.method == "PUT" } }

    /// Returns the outcome of each request that contained the photo, as the server recorded it.
    func seenOfSendings() -> String {
        sendings.map { request -> String in
            switch request.outcome {
            case .answered: return "the server responded"
            case .serverClosed: return "the server closed the connection"
            case .open, .cutByScript, .clientClosed: return "the request ended with \(request.outcome.rawValue)"
            }
        }.joined(separator: ", then ")
    }

    /// Returns the requests about the photo, starting with the first request that contained the photo.
    func seenOfNaming() -> String {
        let requests = photoRequests.drop { $0.method != "PUT" }
        guard let part = requests.first?.path, part.hasPrefix("/photos/.") else {
            return "the photo was NOT SENT UNDER A TEMPORARY NAME"
        }
        let words = requests.map { request -> String in
            let isPhoto = request.path == "/photos/storm.bmp"
            let place = request.path == part ? "temporary file" : isPhoto ? "photo" : "OTHER FILE"
            switch request.method {
            case "PUT": return "\(place) sent"
            case "MOVE": return "\(place) renamed" + (request.outcome == .answered ? "" : " without a response")
            case "HEAD", "PROPFIND": return "\(place) queried"
            case "GET": return "\(place) read"
            default: return "\(request.method) of the \(place)"
            }
        }
        return "requests: " + words.joined(separator: ", ")
    }

    /// Returns the local state of a photo that could not be sent, and the reason.
    func seenOfRefusal() throws -> String {
        let transfer = try ledger { try $0.transfers().first { $0.kind == .upload } }
        let copy = transfer?.bodyFile.map { home.directories.spool.appendingPathComponent($0) }
        let isHere = try [photo, copy].allSatisfy { place in
            try place.map { try Data(contentsOf: $0) == Self.photoBytes } ?? false
        }
        let reason = seenOfError("password", of: transfer)
        return reason + (isHere ? "; the photo and its copy are kept" : "; the photo and its copy are NOT KEPT")
    }

    /// Deletes the original, like a user.
    func deleteOriginal() throws {
        try FileManager.default.removeItem(at: photo)
    }

    // MARK: Helpers

    func ledger<Value>(_ body: (LedgerTransaction) throws -> Value) throws -> Value { try home.ledger().read(body) }

    func count(_ number: Int, _ noun: String) -> String { "\(number) \(noun)\(number == 1 ? "" : "s")" }
}
