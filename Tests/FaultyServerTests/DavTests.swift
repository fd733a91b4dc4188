import FaultyServer
import Foundation
import Testing

@Suite("The store of uploads")
struct DavTests {
    private func withStore(_ body: (FaultyServer, DavStore, WireClient) async throws -> Void) async throws {
        try await withServer { server in
            let store = try DavStore(prefix: "/dav")
            server.mount(store)
            try await body(server, store, WireClient(port: server.port))
        }
    }

    private let photo = Data("a photo".utf8)

    @Test func `PUT creates, replaces and refuses files`() async throws {
        try await withStore { _, store, client in
            let created = await client.request("PUT", "/dav/a%20b.jpg", body: photo)
            #expect(created.status == 201)
            let tag = try #require(created["ETag"])
            #expect(await client.request("PUT", "/dav/a%20b.jpg", ["If-None-Match": "*"], body: photo).status == 412)
            #expect(await client.request("PUT", "/dav/a%20b.jpg", ["If-Match": "\"x\""], body: photo).status == 412)
            let newer = await client.request("PUT", "/dav/a%20b.jpg", ["If-Match": tag], body: Data("2".utf8))
            #expect(newer.status == 204)
            #expect(await client.request("PUT", "/dav/no/b.jpg", body: photo).status == 409)
            #expect(await client.request("PUT", "/dav/", body: photo).status == 405)
            #expect(await client.request("PUT", "/dav/%2e%2e/out", body: photo).status == 403)
            #expect(await client.request("PUT", "/dav/p", ["Content-Range": "bytes 0-6/9"], body: photo).status == 400)
            #expect(store.files == ["/a b.jpg"])
            #expect(store.contents(of: "/a b.jpg") == Data("2".utf8))
            #expect(store.unfinishedUploads == 0)
        }
    }

    @Test func `a refusal comes before the body if the client expects 100-continue`() async throws {
        try await withStore { _, store, client in
            await client.send(WireClient.head("PUT", "/dav/no/a", ["Expect": "100-continue"], length: 7))
            #expect(await client.answer().status == 409)
            await client.send(photo)
            await client.send(WireClient.head("PUT", "/dav/a", ["Expect": "100-continue"], length: 7))
            #expect(await client.answer().status == 100)
            await client.send(photo)
            #expect(await client.answer().status == 201)
            #expect(store.files == ["/a"])
        }
    }

    @Test func `MOVE, MKCOL, DELETE, HEAD, GET and PROPFIND have the expected statuses`() async throws {
        try await withStore { server, store, client in
            _ = await client.request("PUT", "/dav/up", body: photo)
            #expect(await client.request("MKCOL", "/dav/in").status == 201)
            #expect(await client.request("MKCOL", "/dav/in").status == 405)
            #expect(await client.request("MKCOL", "/dav/x/y").status == 409)
            let there = ["Destination": "\(server.url)/dav/in/p%20q.jpg", "Overwrite": "F"]
            #expect(await client.request("MOVE", "/dav/up", ["Destination": "/dav/none/p"]).status == 409)
            #expect(await client.request("MOVE", "/dav/up", ["Destination": "/else/p"]).status == 403)
            #expect(await client.request("MOVE", "/dav/up", there).status == 201)
            #expect(await client.request("MOVE", "/dav/up", there).status == 404)
            _ = await client.request("PUT", "/dav/up", body: Data("new".utf8))
            #expect(await client.request("MOVE", "/dav/up", there).status == 412)
            #expect(await client.request("MOVE", "/dav/up", ["Destination": "/dav/in/p%20q.jpg"]).status == 204)
            let head = await client.request("HEAD", "/dav/in/p%20q.jpg")
            #expect(head.status == 200 && head["Content-Length"] == "3" && head["ETag"] != nil)
            let part = await client.request("GET", "/dav/in/p%20q.jpg", ["Range": "bytes=1-"])
            #expect(part.status == 206 && part.text == "ew")
            let list = await client.request("PROPFIND", "/dav/in", ["Depth": "1"])
            #expect(list.status == 207)
            #expect(list.text.contains("<D:href>/dav/in/p%20q%2Ejpg</D:href>"))
            #expect(list.text.contains("<D:getcontentlength>3</D:getcontentlength>"))
            #expect(await client.request("DELETE", "/dav/in").status == 204)
            #expect(await client.request("DELETE", "/dav/in").status == 404)
            #expect(await client.request("PATCH", "/dav/in").status == 405)
            #expect(store.files.isEmpty)
        }
    }

    @Test(.timeLimit(.minutes(30)))
    func `uploads can be refused, cut, stalled or left without a response`() async throws {
        try await withStore { server, store, client in
            store.refuse(status: 507, method: "PUT")
            #expect(await client.request("PUT", "/dav/a", body: photo).status == 507)
            #expect(await client.request("PUT", "/dav/a", body: photo).status == 201)

            store.cutUploads(afterBytes: 1000)
            await client.send(WireClient.head("PUT", "/dav/cut", length: 100_000))
            await client.send(Data(count: 2000))
            let cutEnd = await client.receiveToEnd().end
            #expect(cutEnd == .closed || cutEnd == .reset)
            let cut = try await server.waitForRequest { $0.path == "/dav/cut" && $0.outcome == .cutByScript }
            #expect(cut.bodyByteCount >= 1000)

            store.stallUploads(afterBytes: 1000)
            let stalled = try WireClient(port: server.port, sendTimeout: 200)
            await stalled.send(WireClient.head("PUT", "/dav/stall", length: 1_000_000_000))
            // The data is larger than the socket buffers of both sides.
            #expect(await stalled.send(Data(count: 64_000_000)) < 64_000_000)
            try await server.waitForRequest { $0.path == "/dav/stall" && $0.bodyByteCount >= 1000 }
            await server.dropConnections()
            try await server.waitForRequest { $0.path == "/dav/stall" && $0.outcome == .serverClosed }

            store.loseAnswers(to: "PUT")
            let lost = try WireClient(port: server.port)
            await lost.send(WireClient.head("PUT", "/dav/lost", length: 7))
            await lost.send(photo)
            let (data, end) = await lost.receiveToEnd()
            #expect(data.isEmpty && end == .closed)
            store.loseAnswers(to: "MOVE")
            let moving = try WireClient(port: server.port)
            await moving.send(WireClient.head("MOVE", "/dav/lost", ["Destination": "/dav/moved"]))
            let moved = await moving.receiveToEnd()
            #expect(moved.data.isEmpty && moved.end == .closed)
            #expect(store.files == ["/a", "/moved"])
            #expect(store.contents(of: "/moved") == photo)
            #expect(store.unfinishedUploads == 0)
        }
    }

    @Test func `a broken upload leaves no file, and a large upload arrives completely`() async throws {
        try await withStore { server, store, client in
            await client.send(WireClient.head("PUT", "/dav/broken", length: 100))
            await client.send(photo)
            try await server.waitForRequest { $0.bodyByteCount == 7 }
            #expect(store.unfinishedUploads == 1)
            client.hangUp()
            try await server.waitUntil { $0.connectionsOpen == 0 }
            #expect(store.files.isEmpty && store.unfinishedUploads == 0)
            let large = Payload.pattern(20_000_000).data
            let second = try WireClient(port: server.port)
            #expect(await second.request("PUT", "/dav/large", body: large).status == 201)
            #expect(store.contents(of: "/large") == large)
            #expect(await second.request("GET", "/dav/large").body == large)
        }
    }
}
