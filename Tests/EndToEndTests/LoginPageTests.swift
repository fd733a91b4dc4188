import BackgroundLedger
import FaultyServer
import Foundation
import Testing

extension EndToEnd {
    /// Tests with a captive portal, for example in a hotel. The portal answers every http request. The transfers complete as soon
    /// as the portal is removed.
    @Suite struct LoginPage {
        let desktop: Desktop
        let server: FaultyServer

        init() async throws {
            (desktop, server) = (try Desktop(), try await FaultyServer.start())
        }

        private static let page = ResponseScript.status(
            200, headers: ["Content-Type": "text/html"], body: "<html>Welcome to our hotel</html>")

        /// Switches the portal on: all requests get the portal's page, and all uploads get the given response.
        private func close(_ answer: ResponseScript) {
            server.route(nil, "*", Self.page)
            for method in ["POST", "PUT"] { server.route(method, "/d*", answer) }
        }

        private func open() {
            server.route(nil, "*", .status(404))
            for method in ["POST", "PUT"] { server.route(method, "/d*", .json("{}")) }
        }

        @Test(arguments: ["a page", "another host"], ["multipart", "put"])
        func `the response of a captive portal to an upload is not accepted`(_ answer: String, _ kind: String) throws {
            let home = try Home(
                desktop: desktop,
                extra: """
                    [upload.destinations.there]
                    kind = "\(kind)"
                    url = "\(server.url)/d\(kind == "put" ? "/a.jpg?signature=secret" : "")"
                    """)
            let elsewhere = server.url.replacing("127.0.0.1", with: "localhost")
            close(answer == "a page" ? Self.page : .status(303, headers: ["Location": "\(elsewhere)/login"]))
            let photo = home.folder.appendingPathComponent("a.jpg")
            try JPEG.withoutPosition.write(to: photo)
            #expect(try home.stormy("upload", photo.path).status == 0)
            try home.wait("the doubt") { try $0.transfers().first { $0.state == .waiting && $0.errorCode == -1010 } }
            #expect(desktop.listen(for: 1) == ["This network requires a login"])
            // The photo is still being uploaded and is not stored on the server.
            #expect(try home.stormy("upload", photo.path).errors.contains("is already queued"))
            open()
            try home.stormy("transfers", "retry", "all")
            try home.wait("the photo") { try $0.transfers().first { $0.state == .completed } }
            #expect(desktop.listen(for: 2).last == "Photo uploaded")
            let sent = server.activity.requests.filter { $0.method != "GET" && $0.bodyByteCount > 0 }
            #expect(sent.count == 2, "the photo is sent once to the portal and once to the server: \(sent.map(\.path))")
        }

        /// The portal redirects to a page that may not exist. Only a response of the real server can show that a photo is lost.
        @Test(arguments: ["another host", "another path"])
        func `a redirect of a captive portal does not mark a photo as lost`(_ place: String) throws {
            let home = try Home(
                desktop: desktop, extra: "[upload.destinations.there]\nkind = \"multipart\"\nurl = \"\(server.url)/d/up\"")
            server.route("POST", "/d/up", .status(201, headers: ["Location": "/d/a.jpg"]))
            let photo = home.folder.appendingPathComponent("a.jpg")
            try JPEG.withoutPosition.write(to: photo)
            #expect(try home.stormy("upload", "--wait", photo.path).status == 0)
            let elsewhere = place == "another host" ? server.url.replacing("127.0.0.1", with: "localhost") : ""
            server.route("GET", "/d/a.jpg*", .status(302, headers: ["Location": "\(elsewhere)/login"]))
            server.route("GET", "/login", .status(404))
            let looked = try home.stormy("upload", "--verify")
            #expect(
                looked.status == 69
                    && looked.output.contains("could not be checked now: the server redirected to another address"), "\(looked)")
            server.route("GET", "/d/a.jpg*", .status(404))
            #expect(try home.stormy("upload", "--verify").output.contains("is MISSING"))
        }

        @Test func `the page of a captive portal does not replace a partial download`() throws {
            let home = try Home(desktop: desktop)
            let file = Payload.pattern(1_000_000)
            server.route("GET", "/disk.img", .cutAfter(500_000, of: file, etag: "\"v1\""), Self.page)
            let target = home.folder.appendingPathComponent("disk.img")
            #expect(try home.stormy("download", server.url + "/disk.img", "-o", target.path).status == 0)
            try home.wait("the doubt") { try $0.transfers().first { $0.state == .waiting && $0.errorCode == -1010 } }
            #expect(desktop.listen(for: 1) == ["This network requires a login"])
            #expect(!FileManager.default.fileExists(atPath: target.path))
            server.route("GET", "/disk.img", .file(file, etag: "\"v1\""))
            try home.stormy("transfers", "retry", "all")
            try home.wait("the file") { try $0.transfers().first { $0.state == .completed } }
            try home.wait("that it is taken back") { transaction in
                try transaction.notifications().contains { $0.identifier.contains("portal") && $0.state == .withdrawn }
                    ? true : nil
            }
            #expect(try Data(contentsOf: target) == file.data)
            #expect(server.activity.requests.last?.headers["Range"]?.hasPrefix("bytes=") == true, "the partial file was kept")
        }
    }
}
