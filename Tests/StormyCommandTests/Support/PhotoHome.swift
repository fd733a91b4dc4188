import BackgroundTasksTesting
import Foundation
import ProcessSupport
import ServerScripts
import Spool
import Testing

/// Homes whose destination is a folder on a virtual server.
enum PhotoHome {
    static let address = VirtualHome.origin + "/photos/"

    /// Returns the configuration of a destination.
    static func destination(_ kind: String = "webdav", _ url: String = address, name: String = "home") -> String {
        "[upload.destinations.\(name)]\nkind = \"\(kind)\"\nurl = \"\(url)\"\n"
    }

    /// Runs a test with a server that has the folder `/photos`. The server responds with 404 to requests outside this folder.
    ///
    /// - Parameters:
    ///   - configuration: The upload destinations.
    ///   - body: The test.
    static func play(
        _ configuration: String = destination(), _ body: @Sendable (VirtualHome, DavStore) async throws -> Void
    ) async throws {
        try await VirtualHome.play(configuration) { home in
            home.server.route(nil, "*", .status(404))
            let store = try DavStore(prefix: "/photos", directory: home.folder.appendingPathComponent("server"))
            home.server.mount(store)
            try await body(home, store)
        }
    }
}

extension DavStore {
    /// The sorted names of the files that the server received.
    var arrived: [String] { files.map { String($0.dropFirst()) } }

    /// The SHA-256 of each file that the server received, by name.
    var digests: [String: String] {
        arrived.reduce(into: [:]) { $0[$1] = FileDigest.sha256(of: contents(of: $1) ?? Data()) }
    }
}

extension VirtualHome {
    /// The folder with the user's photos.
    var camera: URL { folder.appendingPathComponent("camera") }

    /// Writes a file into the home folder or a folder inside it. Missing folders are created.
    @discardableResult
    func write(_ bytes: Data, to name: String) throws -> URL {
        let file = folder.appendingPathComponent(name)
        try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try bytes.write(to: file)
        return file
    }

    /// Writes a file that other users cannot read.
    @discardableResult
    func writeSecret(_ text: String, to name: String) throws -> URL {
        let file = try write(Data(text.utf8), to: name)
        chmod(file.path, 0o600)
        return file
    }

    /// Writes a JPEG picture into the camera folder. Pictures with different names have different bytes.
    @discardableResult
    func picture(_ name: String, isLocated: Bool = false) throws -> URL {
        try write(JPEG.picture(name, isLocated: isLocated), to: "camera/" + name)
    }

    /// Writes files into the camera folder. The files are not photos of a known format. The names contain characters that must be
    /// encoded in a URL.
    ///
    /// - Returns: The SHA-256 of each file, by name.
    func makePhotos(_ count: Int) throws -> [String: String] {
        var digests: [String: String] = [:]
        for index in 0..<count {
            let name = "IMG \(index) ü#?.jpg"
            let bytes = Payload.pattern(300_000).data + Data(name.utf8)
            try write(bytes, to: "camera/" + name)
            digests[name] = FileDigest.sha256(of: bytes)
        }
        return digests
    }

    /// Lets virtual time pass until the first transfer has the given state.
    func advance(untilFirstTransferIs state: TransferReport.State) async throws {
        for _ in 0..<200 where driver.ledger.transfers.first?.state != state {
            try await driver.advance(by: .milliseconds(50))
        }
        #expect(driver.ledger.transfers.first?.state == state, "\(driver.ledger.transfers)")
    }

    /// Runs an SQL statement on Stormy's store.
    func changeStore(_ statement: String) throws {
        let store = directories.data.appendingPathComponent("stormy.sqlite").path
        let sqlite = ChildProcess(
            path: "/usr/bin/env", arguments: ["sqlite3", store, statement], environment: ProcessInfo.processInfo.environment)
        let changed = try sqlite.run(within: 60, outputLimit: 1_000)
        #expect(changed.code == 0, "\(changed)")
    }

    /// Removes Stormy's store. The agent's ledger is kept.
    func removeStore() throws {
        for name in try FileManager.default.contentsOfDirectory(atPath: directories.data.path)
        where name.hasPrefix("stormy.sqlite") {
            try FileManager.default.removeItem(at: directories.data.appendingPathComponent(name))
        }
    }
}
