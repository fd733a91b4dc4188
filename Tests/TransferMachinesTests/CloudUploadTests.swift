import Foundation
import Testing

@testable import TransferMachines

@Suite struct NextcloudUploadTests {
    private func plan(_ size: Int64 = 6 << 20, url: String = "https://c/remote.php/dav/files/me/a/b") -> UploadPlan {
        var plan = UploadPlan(kind: .nextcloud, collectionURL: url, fileName: "noon.jpg", byteCount: size, token: "upload-7")
        plan.order.modifiedAt = Date(timeIntervalSince1970: 1_800_000_000.5)
        return plan
    }

    private let place = "https://c/remote.php/dav/uploads/me/stormy-upload7"
    private let target = "https://c/remote.php/dav/files/me/a/b/noon.jpg"

    @Test func `an upload to Nextcloud makes a folder, sends chunks and moves them`() {
        var talk = Dialogue(plan())
        talk.hear(404)
        talk.hear(201)
        #expect(talk.header("Destination") == target)
        talk.hear(201)
        #expect(talk.header("Destination") == target && talk.header("OC-Total-Length") == "\(6 << 20)")
        talk.hear(201)
        talk.hear(201)
        #expect(talk.header("Overwrite") == "F" && talk.header("X-OC-Mtime") == "1800000000")
        talk.hear(200, ["Content-Length": "\(6 << 20)"])
        #expect(
            talk.lines == [
                "HEAD \(target)", "MKCOL \(place)", "PUT \(place)/00001 0+5242880", "PUT \(place)/00002 5242880+1048576",
                "MOVE \(place)/.file", "HEAD \(target)",
            ])
        #expect(talk.outcome == .finished(remoteURL: target) && talk.machine.proof == .length)
    }

    /// ownCloud reports a checksum. If the checksum differs, the server has stored other bytes.
    @Test(arguments: [("SHA256:ABAB", true), ("SHA256:cdcd", false), ("MD5:77", true), ("", true)])
    func `the checksum is sent, and a different SHA-256 on the server is an error`(_ kept: String, _ isOurs: Bool) {
        var plan = plan(100)
        plan.sha256 = "abab"
        var talk = Dialogue(plan)
        for status in [404, 201, 201, 201] { talk.hear(status) }
        #expect(talk.lines.last == "MOVE \(place)/.file" && talk.header("OC-Checksum") == "SHA256:abab")
        talk.hear(200, ["Content-Length": "100", "OC-Checksum": kept])
        let want = "The server stored different bytes: the SHA-256 differs."
        #expect(isOurs ? talk.outcome == .finished(remoteURL: target) : talk.message == want)
    }

    /// Another program has locked the file, or the server combines the chunks after the response.
    @Test(arguments: [202, 207]) func `a MOVE that is not complete is checked and repeated`(_ status: Int) {
        var talk = Dialogue(plan(100))
        for status in [404, 201, 201, status] { talk.hear(status) }
        guard case .retry? = talk.outcome else { Issue.record("\(String(describing: talk.outcome))"); return }
        talk.hear(207)
        #expect(talk.lines.last == "PROPFIND \(place)/", "\(talk.lines)")
    }

    @Test func `missing folders above the target are made`() {
        var talk = Dialogue(plan())
        for status in [404, 409, 409, 201, 201, 201] { talk.hear(status) }
        let files = "https://c/remote.php/dav/files/me"
        #expect(
            talk.lines.dropFirst() == [
                "MKCOL \(place)", "MKCOL \(files)/a/b/", "MKCOL \(files)/a/", "MKCOL \(files)/a/b/", "MKCOL \(place)",
            ])
    }

    @Test func `a new process sends only the missing chunks`() {
        var talk = Dialogue(plan(), resuming: UploadMemory(step: .append, creations: 1))
        func chunk(_ name: String, _ size: Int64) -> String {
            "<d:response><d:href>/remote.php/dav/uploads/me/stormy-upload7/\(name)</d:href><d:propstat><d:prop>"
                + "<d:getcontentlength>\(size)</d:getcontentlength></d:prop></d:propstat></d:response>"
        }
        talk.hear(
            207, [:],
            "<d:multistatus xmlns:d=\"DAV:\">\(chunk("00001", 17))\(chunk("00002", 1 << 20))\(chunk(".file", 0))</d:multistatus>")
        talk.hear(201)
        talk.hear(201)
        #expect(talk.lines == ["PROPFIND \(place)/", "PUT \(place)/00001 0+5242880", "MOVE \(place)/.file"])
    }

    /// The upload receives no response to the MOVE, because a MOVE may take longer than the timeout.
    @Test func `a MOVE without a response is checked at the target`() {
        var talk = Dialogue(plan(), resuming: UploadMemory(step: .append, creations: 1))
        let all =
            "<multistatus><response><href>x/00001</href><getcontentlength>5242880</getcontentlength></response>"
            + "<response><href>x/00002</href><getcontentlength>1048576</getcontentlength></response></multistatus>"
        talk.hear(207, [:], all)
        talk.hear(504)
        talk.hear(404)
        talk.hear(200, ["Content-Length": "\(6 << 20)"])
        #expect(talk.lines.last == "HEAD \(target)")
        for _ in 0..<4 { talk.hear(206, comparison: .same) }
        #expect(talk.lines.last == "GET \(target)" && talk.outcome == .finished(remoteURL: target), "\(talk.lines)")
        #expect(talk.machine.proof == .content)
    }

    /// Raw photos of a camera often have equal lengths, and the camera uses its file numbers again.
    @Test func `chunks that are still there after a refused MOVE show that the file is not ours`() {
        let all =
            "<multistatus><response><href>x/00001</href><getcontentlength>5242880</getcontentlength></response>"
            + "<response><href>x/00002</href><getcontentlength>1048576</getcontentlength></response></multistatus>"
        var talk = Dialogue(plan(), resuming: UploadMemory(step: .append, creations: 1))
        talk.hear(207, [:], all)
        talk.hear(412)
        talk.hear(207, [:], all)
        talk.hear(404)
        talk.hear(207, [:], all)
        talk.hear(201)
        let next = target.replacing("noon.jpg", with: "noon-1.jpg")
        #expect(talk.lines.suffix(4) == ["PROPFIND \(place)/", "HEAD \(next)", "PROPFIND \(place)/", "MOVE \(place)/.file"])
        #expect(talk.header("Destination") == next)
    }

    @Test(arguments: [-1.0, 1e300, .infinity, .nan])
    func `a modification time that no protocol can hold is not sent`(_ seconds: Double) {
        var plan = plan(100)
        plan.order.modifiedAt = Date(timeIntervalSince1970: seconds)
        var talk = Dialogue(plan)
        for status in [404, 201, 201, 201] { talk.hear(status) }
        #expect(talk.lines.last?.hasPrefix("MOVE") == true && talk.header("X-OC-Mtime") == nil)
    }

    @Test func `an address that is not of Nextcloud ends the upload`() {
        var machine = UploadMachine(plan: plan(url: "https://c/dav/me/"))
        guard case .fail(let trouble) = machine.next() else {
            Issue.record("sent")
            return
        }
        #expect(trouble.message.contains("remote.php/dav/files"))
    }

    @Test func `an abandoned upload removes its folder of chunks`() {
        let talk = Dialogue(plan(), resuming: UploadMemory(step: .append, creations: 1))
        #expect(talk.machine.removal?.method == "DELETE" && talk.machine.removal?.url == place)
    }
}

/// Tests servers whose responses would make an upload repeat the same requests without progress.
@Suite struct CircleTests {
    private func plan(_ kind: UploadKind, _ url: String = "https://h/remote.php/dav/files/me/a/") -> UploadPlan {
        var plan = UploadPlan(kind: kind, collectionURL: url, fileName: "p.jpg", byteCount: 6 << 20, token: "t", sha256: "ab")
        plan.order.s3 = S3Access(bucket: "b", region: "r", accessKey: "a", secretKey: "s")
        plan.knowledge.lacksConditions = false
        return plan
    }

    private func pauses(_ talk: inout Dialogue, _ answer: (String) -> (Int, [String: String], String)) -> Int {
        var pauses = 0
        for _ in 0..<200 {
            guard case .send(let request, _, _) = talk.machine.next() else { break }
            let (status, headers, body) = answer(request.method)
            talk.hear(status, headers, body)
            if case .retry = talk.outcome { pauses += 1 }
        }
        return pauses
    }

    /// The server responds with its page for every name. The upload must not try a thousand names.
    @Test(arguments: [UploadKind.put, .webdav, .nextcloud])
    func `a server that responds with a page is waited for`(_ kind: UploadKind) {
        var talk = Dialogue(plan(kind))
        talk.hear(200, ["Content-Type": "text/html; charset=utf-8", "Content-Length": "100"])
        guard case .retry(_, let trouble) = talk.outcome else {
            Issue.record("\(String(describing: talk.outcome))")
            return
        }
        #expect(trouble.message.hasPrefix("The server sent a page"))
    }

    @Test func `a proxy that blocks MOVE is retried with pauses`() {
        var talk = Dialogue(plan(.webdav), resuming: UploadMemory(step: .move, isStored: true))
        #expect(pauses(&talk) { $0 == "MOVE" ? (404, [:], "") : (200, ["Content-Length": "\(6 << 20)"], "") } > 100)
    }

    @Test func `appends without progress are retried with pauses`() {
        var talk = Dialogue(
            plan(.resumable), resuming: UploadMemory(step: .append, place: "https://h/1", creations: 1, version: 8))
        let here = ["Upload-Offset": "5", "Upload-Complete": "?0", "Upload-Limit": "max-append-size=9"]
        #expect(pauses(&talk) { $0 == "PATCH" ? (204, [:], "") : (204, here, "") } > 100)
    }

    @Test func `a list of parts without an end is retried with pauses`() {
        var talk = Dialogue(plan(.s3), resuming: UploadMemory(step: .append, place: "u", creations: 1))
        var number = 0
        let count = pauses(&talk) { method in
            number += 1
            return method != "GET"
                ? (500, [:], "")
                : (200, [:], "<L><IsTruncated>true</IsTruncated><NextPartNumberMarker>\(number)</NextPartNumberMarker></L>")
        }
        #expect(count > 50)
    }

    /// The upload tries all names, one after the other. The search ends, so it is not an endless repetition.
    @Test func `an upload ends if all names are taken`() {
        for kind in [UploadKind.webdav, .s3, .nextcloud] {
            var talk = Dialogue(plan(kind))
            var asked = 0
            while case .send(let request, _, _) = talk.machine.next() {
                asked += 1
                talk.hear(request.url.hasSuffix(plan(kind).nobodysName) ? 404 : 200, ["Content-Length": "1"])
                #expect(talk.outcome == .continue || talk.message != nil)
            }
            #expect(talk.message?.contains("of this name") == true && asked > 900)
        }
    }

    @Test(arguments: [UploadKind.put, .webdav, .s3, .nextcloud])
    func `a server that answers every HEAD with 200 is asked for few names`(_ kind: UploadKind) {
        var plan = plan(kind)
        plan.order.byteCount = 1000
        var talk = Dialogue(plan)
        for _ in 0..<21 {
            talk.hear(200, ["Content-Length": "1"])
            #expect(talk.outcome == .continue)
        }
        #expect(Set(talk.lines).count == 21 && talk.lines.allSatisfy { $0.hasPrefix("HEAD ") }, "\(talk.lines)")
        #expect(talk.lines.last?.hasSuffix("/" + plan.nobodysName) == true)
        talk.hear(404)
        #expect(talk.lines.last?.hasPrefix("GET ") == true && talk.lines.last?.hasSuffix("/" + plan.nobodysName) == true)
        guard case .send(_, _, let saved) = talk.machine.next() else {
            Issue.record("\(String(describing: talk.outcome))")
            return
        }
        #expect(saved.distrustsHead == true)
        // Another process continues the upload.
        talk = Dialogue(plan, resuming: saved)
        while case .send = talk.machine.next(), talk.lines.count < 9 { talk.hear(200, ["Content-Length": "1"]) }
        guard case .finished(let url) = talk.outcome else {
            Issue.record("\(talk.lines) \(String(describing: talk.outcome))")
            return
        }
        // The upload chose a name that no other file has. This server confirms every HEAD request, so only the response to the
        // upload proves the file.
        #expect(url.hasSuffix("/p-ab.jpg") && talk.machine.proof == .answer && talk.lines.count < 6, "\(talk.lines)")
    }

    /// The server sends a success without a body. Caddy does this if no route matches the URL.
    @Test(arguments: [UploadKind.put, .webdav, .s3, .nextcloud])
    func `nothing is sent to a server that answers every address with success`(_ kind: UploadKind) {
        var plan = plan(kind)
        plan.order.byteCount = 1000
        var talk = Dialogue(plan)
        for _ in 0..<22 { talk.hear(200, ["Content-Length": "0"]) }
        guard case .retry(_, let trouble) = talk.outcome,
            trouble.message.hasPrefix("The server reports success for every address")
        else {
            Issue.record("\(talk.lines) \(String(describing: talk.outcome))")
            return
        }
        // The upload repeats its check on the server, and sends nothing else.
        talk.hear(200, ["Content-Length": "0"])
        guard case .retry = talk.outcome else { Issue.record("\(talk.lines)"); return }
        #expect(talk.lines.allSatisfy { $0.hasPrefix("HEAD ") || $0.hasPrefix("GET ") }, "\(talk.lines)")
        // The server now handles the URL again. The first file name that the upload tries is free.
        talk.hear(404)
        talk.hear(404)
        #expect(talk.lines.last == talk.lines.first, "\(talk.lines)")
        guard case .send(let request, _, _) = talk.machine.next() else { Issue.record("\(talk.lines)"); return }
        #expect(["PUT", "MKCOL"].contains(request.method), "\(request.method)")
    }
}
