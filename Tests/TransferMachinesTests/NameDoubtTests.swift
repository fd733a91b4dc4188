import Foundation
import Testing

@testable import TransferMachines

/// Tests that an upload checks the earlier name of its file before it uses another name. The rule applies to each protocol.
@Suite struct NameDoubtTests {
    private static let digest = String(repeating: "ab", count: 32)
    private let name = "https://h/up/noon.jpg"
    private let next = "https://h/up/noon-1.jpg"
    private let ofOurLength = ["Content-Length": "10"]

    private static func plan(_ kind: UploadKind, size: Int64 = 10) -> UploadPlan {
        let folder = kind == .nextcloud ? "https://h/remote.php/dav/files/me/up" : kind == .s3 ? "https://h" : "https://h/up"
        var plan = UploadPlan(
            kind: kind, collectionURL: folder, fileName: "noon.jpg", byteCount: size, token: "t1", sha256: digest)
        plan.order.s3 = S3Access(bucket: "up", region: "us-east-1", accessKey: "a", secretKey: "s")
        plan.knowledge.lacksConditions = false
        return plan
    }

    private func isRetry(_ talk: Dialogue) -> Bool { if case .retry? = talk.outcome { true } else { false } }

    private func place(_ talk: Dialogue) -> String? {
        if case .finished(let url)? = talk.outcome { url.split(separator: "/").last.map(String.init) } else { nil }
    }

    private func puts(_ talk: Dialogue) -> Int { talk.lines.count { $0.hasPrefix("PUT") } }

    /// Returns the upload as a new process continues it, with the state of the last commit.
    private func restarted(_ talk: Dialogue) throws -> Dialogue {
        let saved = try #require(talk.machine.memory ?? talk.memory)
        let kept = try JSONDecoder().decode(UploadMemory.self, from: JSONEncoder().encode(saved))
        return Dialogue(Self.plan(.put), resuming: kept)
    }

    // MARK: A PUT that the server carries out late

    @Test(arguments: [false, true])
    func `a PUT that arrives after the look at its name is found by its content`(_ isOtherProcess: Bool) {
        var talk = isOtherProcess ? Dialogue(Self.plan(.put), resuming: UploadMemory(step: .put)) : Dialogue(Self.plan(.put))
        if !isOtherProcess {
            talk.hear(404)
            talk.hear(0)
        }
        talk.hear(404)
        talk.hear(412)
        talk.hear(404)
        #expect(isRetry(talk), "\(talk.lines)")
        talk.hear(200, ofOurLength)
        talk.hear(200, comparison: .same)
        #expect(talk.outcome == .finished(remoteURL: name) && talk.machine.proof == .digest, "\(talk.lines)")
    }

    @Test func `another's file that has the name and the length keeps the name`() {
        var talk = Dialogue(Self.plan(.put), resuming: UploadMemory(step: .put))
        talk.hear(404)
        talk.hear(412)
        talk.hear(200, ofOurLength)
        talk.hear(200, comparison: .differs)
        talk.hear(404)
        talk.hear(201)
        talk.hear(200, ofOurLength)
        #expect(talk.outcome == .finished(remoteURL: next) && puts(talk) == 2, "\(talk.lines)")
    }

    /// The upload has no record of the file, for example after the ledger was restored from a backup.
    @Test func `a refused name with our content is ours, and the length alone does not prove it`() {
        let findings: [(BodyComparison, String?)] = [(.same, "noon.jpg"), (.differs, nil), (.impossible, nil)]
        for (comparison, expected) in findings {
            var talk = Dialogue(Self.plan(.put))
            talk.hear(404)
            talk.hear(412)
            talk.hear(200, ofOurLength)
            talk.hear(200, comparison: comparison)
            #expect(place(talk) == expected, "\(talk.lines)")
            talk.hear(404)
            if expected == nil { #expect(talk.lines.last == "HEAD \(next)") }
        }
        var talk = Dialogue(Self.plan(.put))
        talk.hear(404)
        talk.hear(412)
        talk.hear(200, ["Content-Length": "9"])
        talk.hear(404)
        #expect(
            talk.lines.suffix(2) == ["HEAD \(name)", "HEAD \(next)"], "no file was sent to the next name, so one query is enough")
    }

    @Test func `a server that refuses a GET after a lost response is believed because of the length`() {
        var talk = Dialogue(Self.plan(.put), resuming: UploadMemory(step: .put))
        talk.hear(404)
        talk.hear(412)
        talk.hear(200, ofOurLength)
        talk.hear(403)
        #expect(talk.outcome == .finished(remoteURL: name) && talk.machine.proof == .length)
    }

    // MARK: A file that is shown late

    @Test func `a file that is shown a moment after its PUT is there once`() {
        var talk = Dialogue(Self.plan(.put))
        talk.hear(404)
        talk.hear(201)
        for _ in 0..<3 {
            talk.hear(404)
            #expect(isRetry(talk))
        }
        talk.hear(200, ofOurLength)
        #expect(talk.outcome == .finished(remoteURL: name) && puts(talk) == 1, "\(talk.lines)")
    }

    @Test(arguments: [false, true])
    func `a file that is shown after its second PUT was refused is there once`(_ isRestarted: Bool) throws {
        var talk = Dialogue(Self.plan(.put))
        talk.hear(404)
        talk.hear(201)
        for _ in 0..<5 { talk.hear(404) }
        talk.hear(412)
        for _ in 0..<3 {
            talk.hear(404)
            #expect(isRetry(talk))
        }
        if isRestarted { talk = try restarted(talk) }
        talk.hear(200, ofOurLength)
        talk.hear(200, comparison: .same)
        #expect(talk.outcome == .finished(remoteURL: name), "\(talk.lines)")
    }

    /// At the second PUT the server was busy. The upload therefore chooses the name of the second PUT again.
    @Test(arguments: [false, true])
    func `a name that is chosen again is looked at`(_ isRestarted: Bool) throws {
        var talk = Dialogue(Self.plan(.put))
        talk.hear(404)
        talk.hear(0)
        talk.hear(404)
        talk.hear(429)
        #expect(talk.machine.openName == name)
        if isRestarted { talk = try restarted(talk) }
        talk.hear(200, ofOurLength)
        talk.hear(200, comparison: .same)
        #expect(talk.outcome == .finished(remoteURL: name), "\(talk.lines)")
    }

    @Test(arguments: [UploadKind.put, .webdav, .nextcloud, .s3])
    func `a length that is a moment late is looked at again, and a file whose length stays wrong is sent again`(
        _ kind: UploadKind
    ) {
        for looks in [1, 3, 4] {
            var talk = sent(kind)
            for _ in 0..<looks { talk.hear(200, ["Content-Length": "5"]) }
            #expect(isRetry(talk), "\(kind)")
            guard looks < 4 else {
                // The file under the first name is not replaced.
                talk.hear(404)
                #expect(talk.lines.last?.hasSuffix("noon-1.jpg") == true, "\(kind) \(talk.lines)")
                continue
            }
            talk.hear(200, ofOurLength)
            #expect(place(talk) == "noon.jpg", "\(kind) \(talk.lines)")
        }
    }

    /// Returns the upload after the response that confirms the file.
    private func sent(_ kind: UploadKind) -> Dialogue {
        var talk = Dialogue(Self.plan(kind))
        talk.hear(404)
        talk.hear(201)
        if kind == .webdav || kind == .nextcloud {
            talk.hear(kind == .webdav ? 200 : 201, kind == .webdav ? ofOurLength : [:])
            talk.hear(201)
        }
        #expect(talk.outcome == .continue, "\(talk.lines)")
        return talk
    }

    // MARK: A look that is refused

    @Test(arguments: [UploadKind.put, .webdav, .nextcloud, .s3])
    func `a look that is refused once is repeated`(_ kind: UploadKind) {
        var talk = sent(kind)
        talk.hear(401)
        #expect(isRetry(talk), "\(kind)")
        talk.hear(503)
        #expect(isRetry(talk), "\(kind)")
        talk.hear(200, ofOurLength)
        #expect(place(talk) == "noon.jpg" && talk.machine.proof == .length, "\(kind)")
    }

    @Test(arguments: [UploadKind.put, .webdav, .nextcloud, .s3], [401, 403, 405, 501])
    func `a server that shows no file to this user is believed, with the response as proof`(_ kind: UploadKind, _ status: Int) {
        var talk = sent(kind)
        for _ in 0..<(status == 401 ? 4 : 1) { talk.hear(status) }
        #expect(place(talk) == "noon.jpg" && talk.machine.proof == .answer, "\(kind) \(String(describing: talk.outcome))")
    }

    // MARK: Names of earlier uploads

    @Test func `a name that an earlier upload had is read back`() {
        for (status, comparison, expected) in [
            (200, BodyComparison.same, "noon.jpg"), (200, .differs, nil), (403, nil, nil), (200, .impossible, nil),
        ] as [(Int, BodyComparison?, String?)] {
            var talk = Dialogue(Self.plan(.put), resuming: UploadMemory(step: .put))
            talk.machine.setOtherNames(taken: [], stored: [name])
            talk.hear(200, ofOurLength)
            talk.hear(status, comparison: comparison)
            #expect(place(talk) == expected, "\(status)")
            talk.hear(404)
            if expected == nil { #expect(talk.lines.last == "HEAD \(next)") }
        }
    }

    @Test func `a name that the server showed as free stays the name, whatever an earlier upload stored there`() {
        var talk = Dialogue(Self.plan(.put))
        talk.hear(404)
        talk.hear(0)
        talk.hear(404)
        talk.machine.setOtherNames(taken: [], stored: [name])
        talk.hear(201)
        #expect(talk.lines.last == "PUT \(name) 0+10", "\(talk.lines)")
    }

    @Test func `a name of an earlier upload is not used if the server cannot show it`() {
        var talk = Dialogue(Self.plan(.put))
        talk.hear(405)
        #expect(talk.machine.needsNames)
        talk.machine.setOtherNames(taken: [], stored: [name])
        talk.hear(201)
        #expect(talk.lines.last == "PUT \(next) 0+10", "\(talk.lines)")
    }

    // MARK: Responses before the complete file

    @Test(arguments: [UploadKind.put, .webdav, .multipart, .tus, .resumable, .s3, .nextcloud, .immich], [200, 201, 204])
    func `a success before the complete file was sent is not believed`(_ kind: UploadKind, _ status: Int) {
        var talk = Dialogue(Self.plan(kind))
        for _ in 0..<8 {
            guard case .send(let request, let content, _) = talk.machine.next() else { break }
            switch content {
            case .snapshot, .wrapped:
                talk.hear(status, ["Upload-Offset": "10", "Upload-Complete": "?1"], bytesSent: 9)
                #expect(isRetry(talk), "\(kind) \(String(describing: talk.outcome))")
                return
            case .none, .empty, .data:
                switch request.method {
                case "HEAD", "GET": talk.hear(404)
                default: talk.hear(201, ["Location": "/1", "Upload-Complete": "?0"])
                }
            }
        }
        Issue.record("nothing was sent: \(talk.lines)")
    }

    /// If the upload used another name after each attempt, the server would keep a partial file under each name.
    @Test(arguments: [UploadKind.put, .s3])
    func `a part that a server confirmed and kept is an error of the server`(_ kind: UploadKind) {
        var talk = Dialogue(Self.plan(kind))
        talk.hear(404)
        talk.hear(200, bytesSent: 4)
        for _ in 0..<4 { talk.hear(200, ["Content-Length": "4"]) }
        #expect(talk.message == "The server stored 4 of 10 bytes." && puts(talk) == 1, "\(talk.lines)")
    }

    @Test func `an early response of a server that shows nothing does not prove success`() {
        var talk = Dialogue(Self.plan(.put))
        talk.hear(404)
        talk.hear(200, bytesSent: 4)
        for _ in 0..<4 { talk.hear(405) }
        #expect(talk.outcome == .continue)
        talk.hear(201)
        talk.hear(405)
        #expect(talk.outcome == .finished(remoteURL: name) && puts(talk) == 2, "\(talk.lines)")
    }

    // MARK: Other protocols

    private static let chunks =
        "<multistatus><response><href>x/00001</href><getcontentlength>10</getcontentlength></response></multistatus>"

    @Test(arguments: [(BodyComparison.same, "noon.jpg"), (.differs, nil)] as [(BodyComparison, String?)])
    func `a file of Nextcloud that is shown after its second MOVE was refused is read back`(
        _ comparison: BodyComparison, _ expected: String?
    ) throws {
        var talk = sent(.nextcloud)
        for _ in 0..<4 {
            talk.hear(404)
            #expect(isRetry(talk))
        }
        // The first MOVE has removed the chunks, so they are sent again. Another process continues the upload.
        talk.hear(404)
        talk = Dialogue(Self.plan(.nextcloud), resuming: talk.memory)
        talk.hear(404)
        for status in [201, 201, 412] { talk.hear(status) }
        talk.hear(207, [:], Self.chunks)
        talk.hear(404)
        #expect(isRetry(talk), "\(talk.lines)")
        talk.hear(200, ofOurLength)
        talk.hear(200, comparison: comparison)
        #expect(place(talk) == expected, "\(talk.lines)")
        talk.hear(404)
        if expected == nil { #expect(talk.lines.last?.hasSuffix("/up/noon-1.jpg") == true, "\(talk.lines)") }
    }

    @Test(arguments: [(BodyComparison.same, "noon.jpg"), (.differs, nil)] as [(BodyComparison, String?)])
    func `a MOVE that the server carries out late, while it still shows the temporary file, is found by the content`(
        _ comparison: BodyComparison, _ expected: String?
    ) {
        var talk = Dialogue(Self.plan(.webdav), resuming: UploadMemory(step: .check, isStored: true))
        talk.hear(200, ofOurLength)
        talk.hear(0)
        talk.hear(200, ofOurLength)
        talk.hear(412)
        talk.hear(200, ofOurLength)
        talk.hear(200, ofOurLength)
        talk.hear(200, comparison: comparison)
        #expect(place(talk) == expected, "\(talk.lines)")
        talk.hear(404)
        guard expected == nil else { return }
        #expect(talk.lines.last == "HEAD \(next)")
        talk.hear(201)
        #expect(talk.lines.last?.hasPrefix("MOVE") == true && talk.header("Destination") == next)
    }

    @Test(arguments: [(BodyComparison.same, "noon.jpg"), (.differs, nil)] as [(BodyComparison, String?)])
    func `an object without metadata is read back after a lost response`(_ comparison: BodyComparison, _ expected: String?) {
        var talk = Dialogue(Self.plan(.s3))
        talk.hear(404)
        talk.hear(0)
        talk.hear(404)
        talk.hear(412)
        talk.hear(404)
        #expect(isRetry(talk))
        talk = Dialogue(Self.plan(.s3), resuming: talk.memory)
        talk.hear(200, ofOurLength)
        #expect(talk.outcome == .continue)
        talk.hear(200, comparison: comparison)
        #expect(talk.lines == ["HEAD \(name)", "GET \(name)"] && talk.requests.allSatisfy { $0.signing != nil })
        #expect(place(talk) == expected)
    }

    @Test func `an object in parts whose completion was lost is looked at before its parts are sent again`() {
        let size: Int64 = 6 << 20
        let list =
            "<ListPartsResult><Part><PartNumber>1</PartNumber><ETag>1</ETag><Size>5242880</Size></Part>"
            + "<Part><PartNumber>2</PartNumber><ETag>2</ETag><Size>1048576</Size></Part></ListPartsResult>"
        var talk = Dialogue(
            Self.plan(.s3, size: size), resuming: UploadMemory(step: .append, place: "u", creations: 1))
        talk.hear(200, [:], list)
        talk.hear(0)
        talk.hear(404)
        for _ in 0..<3 {
            talk.hear(404)
            #expect(isRetry(talk), "\(talk.lines)")
        }
        talk.hear(200, ["Content-Length": "\(size)"])
        for _ in 0..<4 { talk.hear(206, comparison: .same) }
        #expect(place(talk) == "noon.jpg" && talk.machine.proof == .content, "\(talk.lines)")
    }

    @Test func `an object with the digest of another file is not read back`() {
        var talk = Dialogue(Self.plan(.s3))
        talk.hear(200, ofOurLength.merging(["X-Amz-Meta-Sha256": "00"]) { $1 })
        talk.hear(404)
        #expect(talk.lines == ["HEAD \(name)", "HEAD \(next)"])
    }

    /// Some servers send a stored file from another URL, or do not support HEAD for it.
    @Test(
        arguments: [300, 302, 303, 307, 308, 400, 402, 403, 405, 406, 415, 422, 451, 501],
        [UploadKind.put, .webdav, .nextcloud, .s3])
    func `a confirmed file counts although the look at it is refused`(_ status: Int, _ kind: UploadKind) {
        var talk = Dialogue(Self.plan(kind), resuming: UploadMemory(step: .check, isStored: false))
        if kind == .webdav { talk = Dialogue(Self.plan(kind), resuming: UploadMemory(step: .move, isStored: false)) }
        if kind == .s3 {
            talk = Dialogue(Self.plan(kind))
            talk.hear(404)
            talk.hear(200)
        }
        talk.hear(status, ["Location": "https://host/raw/noon.jpg"])
        #expect(place(talk) == "noon.jpg" && talk.machine.proof == .answer, "\(talk.lines) \(String(describing: talk.outcome))")
    }

    @Test(arguments: [(BodyComparison.same, "noon.jpg"), (.differs, nil)] as [(BodyComparison, String?)])
    func `a file of our length is read back after a rename whose temporary file is gone`(
        _ comparison: BodyComparison, _ expected: String?
    ) {
        var talk = Dialogue(Self.plan(.webdav), resuming: UploadMemory(step: .check, isStored: true))
        talk.hear(200, ofOurLength)
        talk.hear(404)
        talk.hear(404)
        talk.hear(200, ofOurLength)
        #expect(talk.lines.last == "HEAD \(name)")
        talk.hear(200, comparison: comparison)
        #expect(talk.lines.last == "GET \(name)" && place(talk) == expected, "\(talk.lines)")
    }

    /// A computer was restored from a backup, and has no record of the upload.
    @Test(arguments: [UploadKind.put, .webdav, .nextcloud, .s3], [BodyComparison.same, .differs])
    func `a file of our name and length is read back before another name is tried`(
        _ kind: UploadKind, _ comparison: BodyComparison
    ) {
        var talk = Dialogue(Self.plan(kind))
        talk.hear(200, ofOurLength)
        talk.hear(200, comparison: comparison)
        #expect(talk.requests.map(\.method) == ["HEAD", "GET"] && Set(talk.requests.map(\.url)).count == 1, "\(talk.lines)")
        #expect(place(talk) == (comparison == .same ? "noon.jpg" : nil))
        if comparison == .differs, case .send(let next, _, _) = talk.machine.next() {
            #expect(next.method == "HEAD" && next.url.hasSuffix("/noon-1.jpg"))
        }
    }

    @Test func `a name that differs in case alone is another upload's`() {
        var talk = Dialogue(Self.plan(.put))
        talk.machine.setOtherNames(taken: [name.replacing("noon", with: "NOON")])
        talk.hear(404)
        #expect(talk.lines == ["HEAD \(next)"], "\(talk.lines)")
    }

    @Test(arguments: [UploadKind.put, .webdav]) func `a file that is never shown is sent twice at most`(_ kind: UploadKind) {
        var talk = Dialogue(Self.plan(kind))
        talk.hear(404)
        for _ in 0..<30 {
            guard case .send(let request, _, _) = talk.machine.next() else { break }
            talk.hear(request.method == "PUT" ? 201 : 404)
        }
        #expect(talk.lines.filter { $0.hasPrefix("PUT") }.count == 2 && talk.message == NameDoubt.notShown, "\(talk.lines)")
    }

    /// A program on the server imports each photo, and removes the photo from the folder.
    @Test(arguments: [201, 404]) func `a file that is taken out of its folder is sent twice at most`(_ toMove: Int) {
        var talk = Dialogue(Self.plan(.webdav))
        var isStored = false
        for _ in 0..<60 {
            guard case .send(let request, _, _) = talk.machine.next() else { break }
            switch request.method {
            case "PUT":
                isStored = true
                talk.hear(201)
            case "MOVE":
                isStored = false
                talk.hear(toMove)
            default: isStored && request.url.hasSuffix(".part") ? talk.hear(200, ofOurLength) : talk.hear(404)
            }
        }
        #expect(talk.lines.filter { $0.hasPrefix("PUT") }.count == 2, "\(talk.lines)")
        #expect(talk.message?.contains("neither under its name") == true, "\(talk.message ?? "")")
    }
}
