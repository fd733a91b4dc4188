import Foundation
import Testing

@testable import TransferMachines

/// A WebDAV server that stores its files in a dictionary. The path of a folder ends with a slash.
private struct DictionaryServer {
    struct File: Equatable {
        var owner: String
        var length: Int64
    }

    var files: [String: File] = [:]
    var folders: Set<String> = ["/"]
    let wholeLength: Int64 = 10
    /// `true` if bytes were sent again although the temporary file was complete.
    var wasSentForNothing = false
    var keepsHalfFiles = false
    var checksDestinationFirst = false

    mutating func answer(_ request: WireRequest, body: Int64?) -> ResponseHead {
        let path = String(request.url.dropFirst("http://h".count))
        let folder = path.hasSuffix("/") ? path : String(path[...path.lastIndex(of: "/")!])
        switch request.method {
        case "HEAD", "GET":
            guard let file = files[path] else { return head(404) }
            return head(200, ["Content-Length": "\(file.length)"])
        case "MKCOL":
            if folders.contains(path) { return head(405) }
            let parent = String(path.dropLast()[...path.dropLast().lastIndex(of: "/")!])
            guard folders.contains(parent) else { return head(409) }
            folders.insert(path)
            return head(201)
        case "PUT":
            guard folders.contains(folder) else { return head(409) }
            if request.headers.contains(HeaderField("If-None-Match", "*")), files[path] != nil { return head(412) }
            if path.hasSuffix(".part"), files[path]?.length == wholeLength { wasSentForNothing = true }
            files[path] = File(owner: "us", length: body ?? 0)
            return head(201)
        case "MOVE":
            let target = request.headers.first { $0.name == "Destination" }!.value.dropFirst("http://h".count)
            let refused = files[String(target)] != nil
            if checksDestinationFirst, refused { return head(412) }
            guard let file = files[path] else { return head(404) }
            if refused { return head(412) }
            files[path] = nil
            files[String(target)] = file
            return head(201)
        default:
            return head(405)
        }
    }

    /// Returns `true` if no file has the destination name of a MOVE.
    func isFree(_ request: WireRequest) -> Bool {
        request.headers.first { $0.name == "Destination" }.map { files[String($0.value.dropFirst("http://h".count))] == nil }
            ?? false
    }

    /// Returns the result of a comparison of a file on the server with the file of the upload.
    func comparison(_ request: WireRequest) -> BodyComparison? {
        files[String(request.url.dropFirst("http://h".count))].map { file in
            file == File(owner: "us", length: wholeLength) ? .same : .differs
        }
    }

    func head(_ status: Int, _ headers: [String: String] = [:]) -> ResponseHead {
        ResponseHead(status: status, headers: headers.map { HeaderField($0.key, $0.value) }, url: "")
    }
}

@Suite struct FolderUploadPropertyTests {
    @Test(arguments: [UploadKind.webdav, .put], 0..<40)
    func `exactly one complete copy is stored`(_ kind: UploadKind, _ block: Int) {
        for seed in block * 100..<block * 100 + 100 { run(kind, seed) }
    }

    private func run(_ kind: UploadKind, _ seed: Int) {
        var dice = Dice(seed)
        var server = DictionaryServer()
        let length = server.wholeLength
        server.keepsHalfFiles = dice.chance(50)
        server.checksDestinationFirst = dice.chance(50)
        if kind == .put || dice.chance(50) { server.folders.formUnion(["/a/", "/a/b/"]) }
        var foreign: [String: DictionaryServer.File] = [:]
        let plan = UploadPlan(
            kind: kind, collectionURL: "http://h/a/b", fileName: "p.jpg", byteCount: length, token: "t")
        var machine = UploadMachine(plan: plan)
        var saved: UploadMemory?
        for round in 0..<600 {
            let quiet = round >= 300
            // Another client stores a file under one of the names. In some cases this file has the same length as the uploaded
            // file.
            if !quiet, dice.chance(8), server.folders.contains("/a/b/") {
                let path = "/a/b/" + ["p.jpg", "p-1.jpg", "p-2.jpg"].randomElement(using: &dice)!
                // In WebDAV only lengths are compared. While a response about a name is pending, no client takes this name.
                if server.files[path] == nil, kind == .put || saved?.step == .chooseName || saved == nil {
                    foreign[path] = .init(owner: "other", length: dice.chance(50) ? length : 3)
                    server.files[path] = foreign[path]
                }
            }
            let (request, content, state): (WireRequest, UploadContent, UploadMemory)
            switch machine.next() {
            case .send(let sent, let carried, let memory): (request, content, state) = (sent, carried, memory)
            case .compare(let sent, _, let memory): (request, content, state) = (sent, .none, memory)
            case .finished, .fail:
                Issue.record("\(kind) seed \(seed): the end was not reported")
                return
            }
            saved = state
            let crash = !quiet && dice.chance(15)
            if crash, dice.chance(40) {
                machine = UploadMachine(plan: plan, resuming: saved)
                continue
            }
            let end = send(request, content == .none ? nil : length, &server, &dice, quiet: quiet)
            if crash {
                machine = UploadMachine(plan: plan, resuming: saved)
                continue
            }
            switch machine.ended(end, now: Date(timeIntervalSince1970: 0), attemptsWithoutProgress: 0, jitter: 0) {
            case .continue, .retry: continue
            case .fail(let trouble):
                Issue.record("\(kind) seed \(seed): \(trouble)")
                return
            case .finished(let url):
                let ours = server.files.filter { $0.value == .init(owner: "us", length: length) }
                #expect(ours.map { "http://h" + $0.key } == [url], "\(kind) seed \(seed)")
                for (path, file) in foreign { #expect(server.files[path] == file, "\(kind) seed \(seed): overwritten") }
                #expect(server.files["/a/b/.t.part"] == nil)
                #expect(!server.wasSentForNothing, "\(kind) seed \(seed): the complete file was sent again")
                return
            }
        }
        Issue.record("\(kind) seed \(seed): no end")
    }

    /// Sends one request over a bad network. The request may be lost, or only a part may arrive, or its response may be lost.
    private func send(
        _ request: WireRequest, _ body: Int64?, _ server: inout DictionaryServer, _ dice: inout Dice, quiet: Bool
    ) -> WireEnd {
        let lost = WireEnd(head: nil, failure: .connectionLost, bytesSent: 0, bytesReceived: 0)
        let sent = body ?? 0
        if quiet || dice.chance(70) {
            var end = WireEnd(head: server.answer(request, body: body), failure: nil, bytesSent: sent, bytesReceived: 0)
            if request.method == "GET" { end.comparison = server.comparison(request) }
            return end
        }
        switch Int.random(in: 0..<5, using: &dice) {
        case 4 where request.method == "MOVE":
            // A proxy repeats the request. The response belongs to the second request.
            _ = server.answer(request, body: body)
            return WireEnd(head: server.answer(request, body: body), failure: nil, bytesSent: sent, bytesReceived: 0)
        case 3 where request.method == "MOVE" && server.isFree(request):
            // The server confirms the MOVE, but does not rename the file. The server does this only if no other file has the
            // name.
            return WireEnd(head: server.head(201), failure: nil, bytesSent: sent, bytesReceived: 0)
        case 0:
            return lost
        case 1:
            return WireEnd(head: server.head(503), failure: nil, bytesSent: sent, bytesReceived: 0)
        case 2 where body != nil && server.keepsHalfFiles:
            _ = server.answer(request, body: 4)
            return lost
        default:
            let head = server.answer(request, body: body)
            // A gateway's error hides the result of the request.
            if dice.chance(50) { return lost }
            let hidden = request.method == "PUT" && dice.chance(50) ? 400 : 502
            let shown = server.head(head.status < 300 ? hidden : head.status)
            return WireEnd(head: shown, failure: nil, bytesSent: sent, bytesReceived: 0)
        }
    }
}
