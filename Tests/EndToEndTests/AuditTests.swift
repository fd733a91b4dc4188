import FaultyServer
import Foundation
import ServerScripts
import Testing

extension EndToEnd {
    /// Tests of the command `audit` with real servers on loopback.
    @Suite struct Audit {
        private let server: FaultyServer
        private let home: Home

        init() async throws {
            server = try await FaultyServer.start()
            home = try Home()
        }

        private func write(_ name: String, _ bytes: Data) throws {
            let file = home.folder.appendingPathComponent("camera/" + name)
            try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try bytes.write(to: file)
        }

        /// Removes the store and the ledger, as a new installation does.
        private func forgetEverything() throws {
            _ = try home.stormy("quit")
            for folder in [home.directories.state, home.directories.data] {
                for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) {
                    try FileManager.default.removeItem(at: folder.appendingPathComponent(name))
                }
            }
        }

        @Test(arguments: UploadWay.small)
        func `after a new installation the server is asked, and no photo is sent again`(_ way: UploadWay) throws {
            let store = try way.makeStore(prefix: "/up", in: home.folder.appendingPathComponent("server"))
            server.mount(store)
            let secret = home.folder.appendingPathComponent("secret")
            try Data(ImmichStore.key.utf8).write(to: secret)
            chmod(secret.path, 0o600)
            let lines = way.lines("\(server.url)/up", secrets: secret)
            try home.configure("[upload.destinations.nas]\nkind = \"\(way.kind)\"\n\(lines)\n")
            let camera = home.folder.appendingPathComponent("camera")
            // Two photos have the same name, and one of the photos has a location.
            try write("one.jpg", JPEG.withoutPosition)
            try write("sub/one.jpg", JPEG.withoutPosition + Data("2".utf8))
            try write("two.jpg", JPEG.withPosition)
            let sent = try home.stormy("upload", "--wait", "--recursive", camera.path)
            #expect(sent.status == 0 && UploadWay.photos(in: store).count == 3, "\(sent)")
            #expect(try home.stormy("audit", camera.path).status == 0)
            try forgetEverything()
            try write("three.jpg", JPEG.withoutPosition + Data("3".utf8))
            let requests = server.requests().count
            let audit = try home.stormy("audit", camera.path)
            let canAsk = ![.multipart, .tus, .resumable].contains(way)
            guard canAsk else {
                #expect(audit.status == 69 && audit.errors.contains("only uploads of this computer are known"), "\(audit)")
                #expect(server.requests().count == requests)
                return
            }
            #expect(audit.status == 69 && audit.output.contains("4 photos for nas: 3 uploaded, 1 never uploaded."), "\(audit)")
            #expect(audit.output.contains("/three.jpg: never uploaded"), "\(audit)")
            #expect(UploadWay.photos(in: store).count == 3, "the audit changed the server")
            let again = try home.stormy("upload", "--wait", "--recursive", camera.path)
            #expect(again.status == 0 && again.errors.contains("is already uploaded"), "\(again)")
            #expect(UploadWay.photos(in: store).count == 4)
            let safe = try home.stormy("audit", "--safe-to-delete", camera.path)
            #expect(safe.status == 0 && safe.output.split(separator: "\n").count == 4, "\(safe)")
            let status = try home.stormy("status", "--json").output
            #expect(status.contains("\"failed\" : 0"), "\(status)")
        }
    }
}
