import Foundation
import Synchronization
import Testing
import TransferMachines

@testable import CurlTransport

private func ok(_ body: String, _ headers: String = "") -> String {
    "HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\n\(headers)\r\n\(body)"
}

@Suite(.timeLimit(.minutes(30))) struct CurlTransportTests {
    @Test func `a GET returns the response headers and the body`() async {
        let asked = Mutex("")
        let server = ScriptedServer { client in
            asked.withLock { $0 = client.readHead() ?? "" }
            client.send(ok("hello", "ETag: \"1\"\r\nX-Folded: a\r\n b\r\n"))
        }
        let sink = Memory()
        let request = WireRequest(
            method: "GET", url: server.url + "/f", headers: [HeaderField("Range", "bytes=4-"), HeaderField("X-Empty", "")])
        let end = await Bench().run(request, sink: sink)
        #expect(end.failure == nil && end.bytesReceived == 5 && end.head == sink.heads.first && sink.heads.count == 1)
        #expect(end.head?.status == 200 && end.head?["etag"] == "\"1\"" && end.head?["X-Folded"] == "a b")
        #expect(end.head?.url == server.url + "/f")
        #expect(sink.text == "hello")
        let text = asked.withLock { $0 }
        #expect(text.contains("Range: bytes=4-") && text.contains("User-Agent: Bench/1") && text.contains("X-Empty:"))
        #expect(!text.contains("Accept-Encoding") && !text.contains("Expect"))
    }

    @Test func `a short body is a lost connection with response headers`() async {
        let server = ScriptedServer { client in
            _ = client.readHead()
            client.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello")
        }
        let sink = Memory()
        let end = await Bench().run(WireRequest(method: "GET", url: server.url), sink: sink)
        #expect(end.failure == .connectionLost && end.head?.status == 200 && end.bytesReceived == 5 && sink.text == "hello")
    }

    @Test(arguments: [
        "", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", "HTTP/1.1 200 OK\r\nContent-",
    ])
    func `a response that is cut off is a failure`(_ answer: String) async {
        let server = ScriptedServer { client in
            _ = client.readHead()
            client.send(answer)
        }
        let end = await Bench().run(WireRequest(method: "GET", url: server.url))
        #expect(end.failure == .connectionLost || (answer.hasSuffix("Content-") && end.failure != nil))
    }

    @Test(arguments: [
        "", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhello",
        "HTTP/1.1 302 F\r\nLocation: /b\r\nContent-Length: 9\r\n\r\n",
    ])
    func `silence of the server is a stall`(_ answer: String) async {
        let server = ScriptedServer { client in
            _ = client.readHead()
            client.send(answer)
            client.waitUntilGone()
        }
        let begin = monotonicSeconds()
        // The timeout is long enough for the server's thread on a busy machine.
        let end = await Bench().run(WireRequest(method: "GET", url: server.url, idleTimeout: 2))
        #expect(end.failure == .stalled && end.bytesReceived == (answer.hasSuffix("hello") ? 5 : 0))
        #expect((1.9..<30).contains(monotonicSeconds() - begin))
    }

    @Test func `addresses that cannot be reached have distinct failures`() async {
        let server = ScriptedServer { _ in }
        server.stop()
        #expect(await Bench().run(WireRequest(method: "GET", url: server.url)).failure == .couldNotConnect)
        let nowhere = WireRequest(method: "GET", url: "http://nowhere.invalid/")
        #expect(await Bench().run(nowhere).failure == .couldNotResolveHost)
        for bad in ["file:///etc/hostname", "ftp://127.0.0.1/", "127.0.0.1", "http://127.0.0.1/a b", "http://", ""] {
            #expect(await Bench().run(WireRequest(method: "GET", url: bad)).failure == .unsupportedURL, "\(bad)")
        }
    }

    @Test func `redirects are followed up to a limit and not to another scheme`() async {
        let server = ScriptedServer { client in
            while let head = client.readHead() {
                let path = head.split(separator: " ")[1]
                switch path {
                case "/loop": client.send("HTTP/1.1 302 F\r\nLocation: /loop\r\nContent-Length: 0\r\n\r\n")
                case "/file": client.send("HTTP/1.1 302 F\r\nLocation: file:///etc/hostname\r\nContent-Length: 0\r\n\r\n")
                case "/once": client.send("HTTP/1.1 307 F\r\nLocation: /end?x=1\r\nContent-Length: 4\r\n\r\ngone")
                default: client.send(ok("end"))
                }
            }
        }
        func get(_ path: String, _ limit: Int = 5, _ sink: Memory = Memory()) async -> WireEnd {
            await Bench().run(WireRequest(method: "GET", url: server.url + path, maximumRedirects: limit), sink: sink)
        }
        #expect(await get("/loop").failure == .tooManyRedirects)
        #expect(await get("/file").failure == .redirectToOtherScheme)
        let sink = Memory()
        let end = await get("/once", 5, sink)
        #expect(end.head?.status == 200 && end.head?.url == server.url + "/end?x=1" && sink.text == "end")
        #expect(sink.heads.count == 1)
        let unfollowed = Memory()
        #expect(await get("/once", 0, unfollowed).head?.status == 307)
        #expect(unfollowed.text == "gone")
    }

    @Test func `credentials are not sent to another host`() async {
        let asked = Mutex("")
        let other = ScriptedServer { client in
            asked.withLock { $0 = client.readHead() ?? "" }
            client.send(ok("end"))
        }
        let server = ScriptedServer { client in
            _ = client.readHead()
            client.send("HTTP/1.1 302 F\r\nLocation: \(other.url)/\r\nContent-Length: 0\r\n\r\n")
        }
        // libcurl does not treat all of these headers as secrets.
        let secrets = ["Authorization", "Cookie", "X-Api-Key", "Proxy-Authorization", "Private-Token"]
        let headers = secrets.map { HeaderField($0, "s") } + [HeaderField("Accept", "text/x-kept"), HeaderField("X-Empty", "")]
        let end = await Bench().run(WireRequest(method: "GET", url: server.url, headers: headers))
        let text = asked.withLock { $0 }
        #expect(end.head?.status == 200 && text.contains("Accept: text/x-kept"))
        #expect((secrets + ["X-Empty", "Expect"]).allSatisfy { !text.contains($0) }, "\(text)")
    }

    @Test(arguments: [0, 1, 3_000_000])
    func `a PUT sends every byte`(_ count: Int) async {
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let got = Mutex<(String, [UInt8])>(("", []))
        let server = ScriptedServer { client in
            let head = client.readHead() ?? ""
            let body = client.readBody(count)
            got.withLock { $0 = (head, body) }
            client.send("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
        }
        let end = await Bench().run(WireRequest(method: "PUT", url: server.url + "/f"), source: Bytes(bytes))
        #expect(end.failure == nil && end.head?.status == 201 && end.bytesSent == count)
        let (head, body) = got.withLock { $0 }
        #expect(body == bytes && head.hasPrefix("PUT /f ") && head.contains("Content-Length: \(count)"))
        #expect(!head.contains("Expect"))
    }

    @Test func `a redirected body is sent again from its start`() async {
        let got = Mutex<[[UInt8]]>([])
        let server = ScriptedServer { client in
            while let head = client.readHead() {
                let body = client.readBody(5)
                got.withLock { $0.append(body) }
                client.send(head.contains(" /b ") ? ok("") : "HTTP/1.1 307 F\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n")
            }
        }
        let end = await Bench().run(WireRequest(method: "POST", url: server.url + "/a"), source: Bytes(Array("hello".utf8)))
        #expect(end.failure == nil && got.withLock { $0 } == [Array("hello".utf8), Array("hello".utf8)])
    }

    @Test func `a source that fails or ends early stops the attempt`() async {
        let server = ScriptedServer { client in
            _ = client.readHead()
            client.waitUntilGone()
        }
        let request = WireRequest(method: "PUT", url: server.url)
        #expect(await Bench().run(request, source: Bytes([1, 2], fails: true)).failure == .stoppedByOwner)
        #expect(await Bench().run(request, source: Bytes([1, 2], announced: 9)).failure == .stoppedByOwner)
    }

    @Test func `a source that has grown sends only the announced bytes`() async {
        let got = Mutex<[UInt8]>([])
        let server = ScriptedServer { client in
            _ = client.readHead()
            let body = client.readBody(3)
            got.withLock { $0 = body }
            client.send(ok(""))
        }
        let end = await Bench().run(
            WireRequest(method: "PUT", url: server.url), source: Bytes(Array("abcdef".utf8), announced: 3))
        #expect(end.failure == nil && end.bytesSent == 3 && got.withLock { $0 } == Array("abc".utf8))
    }

    @Test func `an early refusal keeps its status`() async {
        let server = ScriptedServer { client in
            _ = client.readHead()
            client.send("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            client.waitUntilGone()
        }
        let bytes = [UInt8](repeating: 7, count: 4_000_000)
        let end = await Bench().run(WireRequest(method: "PUT", url: server.url), source: Bytes(bytes))
        #expect(end.head?.status == 413)
    }

    @Test(arguments: ["HEAD", "MOVE", "MKCOL", "DELETE", "PROPFIND", "POST"])
    func `other methods are sent as given, without a content type`(_ method: String) async {
        let asked = Mutex("")
        let server = ScriptedServer { client in
            asked.withLock { $0 = client.readHead() ?? "" }
            client.send("HTTP/1.1 200 OK\r\nContent-Length: \(method == "HEAD" ? 5_000_000 : 0)\r\n\r\n")
        }
        let request = WireRequest(method: method, url: server.url + "/x", maximumBodyBytes: 10)
        let end = await Bench().run(request)
        #expect(end.failure == nil && end.head?.status == 200)
        let text = asked.withLock { $0 }
        #expect(text.hasPrefix("\(method) /x HTTP/1.1") && !text.contains("Content-Type"))
    }

    @Test func `interim responses are not the response`() async {
        let server = ScriptedServer { client in
            _ = client.readHead()
            client.send("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
            client.send("HTTP/1.1 104 Upload\r\nLocation: /u\r\n\r\n" + ok("hello"))
        }
        let sink = Memory()
        let end = await Bench().run(WireRequest(method: "GET", url: server.url), sink: sink)
        #expect(end.failure == nil && end.head?.status == 200 && sink.heads.count == 1 && sink.text == "hello")
        #expect(end.head?["Link"] == nil && end.head?["Location"] == nil)
    }

    @Test func `trailers are not response headers`() async {
        let server = ScriptedServer { client in
            _ = client.readHead()
            client.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nETag: \"t\"\r\n\r\n")
        }
        let sink = Memory()
        let end = await Bench().run(WireRequest(method: "GET", url: server.url), sink: sink)
        #expect(end.failure == nil && end.head?["ETag"] == nil && sink.text == "hello")
    }

    @Test(arguments: [
        "X-Flood: \(String(repeating: "a", count: 1000))\r\n", "A: b\r\n", String(repeating: "z", count: 1000),
    ])
    func `a flood of headers is a bad response`(_ piece: String) async {
        let server = ScriptedServer { client in
            _ = client.readHead()
            client.send("HTTP/1.1 200 OK\r\n")
            while client.send(piece) {}
        }
        let end = await Bench().run(WireRequest(method: "GET", url: server.url))
        guard case .badAnswer = end.failure else { Issue.record("\(String(describing: end.failure))"); return }
        #expect(end.head == nil)
    }

    @Test func `bytes that are not HTTP are a bad response`() async {
        let server = ScriptedServer { client in
            _ = client.readHead()
            client.send("SSH-2.0-OpenSSH_9.2\r\n")
        }
        let end = await Bench().run(WireRequest(method: "GET", url: server.url))
        guard case .badAnswer = end.failure else { Issue.record("\(String(describing: end.failure))"); return }
    }

    @Test func `a header with a line break or an invalid name fails`() async {
        for bad in [HeaderField("X", "a\r\nY: b"), HeaderField("X\n", "a"), HeaderField("", "a"), HeaderField("X: y", "a")] {
            let end = await Bench().run(WireRequest(method: "GET", url: "http://127.0.0.1:1/", headers: [bad]))
            guard case .other = end.failure else { Issue.record("\(bad): \(String(describing: end.failure))"); continue }
        }
    }
}
