import Foundation
import Testing

@testable import TransferMachines

@Suite struct ImmichUploadTests {
    /// - Parameter version: The version of the server that an earlier upload found.
    private func plan(url: String = "https://i/api", version: Int? = 2) -> UploadPlan {
        var plan = UploadPlan(
            kind: .immich, collectionURL: url, fileName: "noon.jpg", byteCount: 1000, token: "t",
            headers: [HeaderField("x-api-key", "k")], contentType: "image/jpeg")
        (plan.order.sha1, plan.order.modifiedAt) = ("cafe", Date(timeIntervalSince1970: 1_800_000_000))
        plan.knowledge.immichVersion = version
        return plan
    }

    private func verdict(_ action: String, _ more: String = "") -> String {
        #"{"results":[{"id":"photo","action":"\#(action)"\#(more)}]}"#
    }
    private let duplicate = #","reason":"duplicate","assetId":"7""#

    @Test func `a photo is checked, sent and checked again`() {
        var talk = Dialogue(plan())
        talk.hear(200, [:], verdict("accept"))
        #expect(
            talk.words.last == #"{"assets":[{"id":"photo","checksum":"cafe"}]}"#
                || talk.words.last == #"{"assets":[{"checksum":"cafe","id":"photo"}]}"#)
        talk.hear(201, [:], #"{"id":"7","status":"created"}"#)
        #expect(talk.header("x-immich-checksum") == "cafe" && talk.header("x-api-key") == "k")
        let form = talk.words.last ?? ""
        for field in ["deviceAssetId", "deviceId", "fileCreatedAt", "fileModifiedAt", "assetData"] {
            #expect(form.contains("name=\"\(field)\""))
        }
        #expect(form.contains("2027-01-15T08:00:00Z") && form.contains("filename=\"noon.jpg\""))
        talk.hear(200, [:], verdict("reject", duplicate))
        #expect(talk.outcome == .finished(remoteURL: "https://i/photos/7") && talk.machine.proof == .digest)
        #expect(
            talk.lines == [
                "POST https://i/api/assets/bulk-upload-check", "POST https://i/api/assets",
                "POST https://i/api/assets/bulk-upload-check",
            ])
    }

    @Test(arguments: ["https://i", "https://i/", "https://i/api/"])
    func `the API address is found from every form of the server address`(_ url: String) {
        var talk = Dialogue(plan(url: url))
        talk.hear(200, [:], verdict("reject", duplicate))
        #expect(talk.lines == ["POST https://i/api/assets/bulk-upload-check"])
        #expect(talk.outcome == .finished(remoteURL: "https://i/photos/7"))
    }

    @Test func `a rejection for another reason is a failure`() {
        var talk = Dialogue(plan())
        talk.hear(200, [:], verdict("reject", #","reason":"unsupported-format""#))
        #expect(talk.message?.contains("unsupported-format") == true)
    }

    @Test func `a check that shows the photo late does not send the photo again`() {
        var talk = Dialogue(plan())
        talk.hear(200, [:], verdict("accept"))
        talk.hear(201, [:], #"{"id":"7","status":"created"}"#)
        for _ in 0..<3 { talk.hear(200, [:], verdict("accept")) }
        talk.hear(200, [:], verdict("reject", duplicate))
        #expect(talk.outcome == .finished(remoteURL: "https://i/photos/7"))
        #expect(talk.lines.filter { $0.hasSuffix("/api/assets") }.count == 1, "\(talk.lines)")
    }

    @Test func `a photo that Immich never shows is sent twice, and then fails`() {
        var talk = Dialogue(plan())
        talk.hear(200, [:], verdict("accept"))
        for _ in 0..<40 {
            var machine = talk.machine
            guard case .send(let request, _, _) = machine.next() else { break }
            let isCheck = request.url.hasSuffix("check")
            talk.hear(isCheck ? 200 : 201, [:], isCheck ? verdict("accept") : #"{"id":"7"}"#)
        }
        #expect(talk.lines.filter { $0.hasSuffix("/api/assets") }.count == 2, "\(talk.lines)")
        #expect(talk.message?.contains("Check whether Immich has the photo") == true)
    }

    /// A proxy responds in place of Immich while Immich restarts.
    @Test func `after a form that did not reach Immich the next attempt checks once`() {
        var talk = Dialogue(plan())
        talk.hear(200, [:], verdict("accept"))
        talk.hear(404)
        #expect(talk.message != nil)
        var next = Dialogue(plan(), resuming: talk.machine.memory)
        next.hear(200, [:], verdict("accept"))
        next.hear(201, [:], #"{"id":"7"}"#)
        #expect(next.lines == ["POST https://i/api/assets/bulk-upload-check", "POST https://i/api/assets"], "\(next.lines)")
    }

    @Test func `a new process repeats the check after the photo was sent`() {
        var talk = Dialogue(plan())
        talk.hear(200, [:], verdict("accept"))
        talk.hear(201, [:], #"{"id":"7","status":"created"}"#)
        guard case .send(_, _, let memory) = talk.machine.next() else { return }
        var next = Dialogue(plan(), resuming: memory)
        next.hear(200, [:], verdict("accept"))
        next.hear(200, [:], verdict("reject", duplicate))
        #expect(next.outcome == .finished(remoteURL: "https://i/photos/7"))
        #expect(next.lines.allSatisfy { $0.hasSuffix("check") }, "\(next.lines)")
    }

    @Test func `a photo in the trash is a failure`() {
        var talk = Dialogue(plan())
        talk.hear(200, [:], verdict("reject", duplicate + #","isTrashed":true"#))
        #expect(talk.message?.contains("trash") == true)
    }

    @Test func `a reason of the server is shown as one short line`() {
        var talk = Dialogue(plan())
        talk.hear(200, [:], verdict("reject", #","reason":"a\u001b[31m\n\u202eb\#(String(repeating: "x", count: 5000))""#))
        #expect(talk.message.map { $0.count < 300 && $0.contains("a[31mb") && !$0.contains("\n") } == true)
    }

    /// A captive portal responds with 200 to every request.
    @Test func `a success without the id of the photo is a failure`() {
        var talk = Dialogue(plan(version: nil))
        for _ in 0..<4 { talk.hear(200, [:], "<html>log in</html>") }
        #expect(
            talk.message == "The server reported success without an id of the photo, so the server is probably not Immich.")
    }

    @Test func `a photo with a lost response is checked before it is sent again`() {
        var talk = Dialogue(plan())
        talk.hear(200, [:], verdict("accept"))
        talk.hear(0)
        talk.hear(200, [:], verdict("reject", duplicate))
        #expect(talk.outcome == .finished(remoteURL: "https://i/photos/7"))
        #expect(talk.lines.filter { $0.hasSuffix("/assets") }.count == 1)
    }

    // MARK: Versions

    private func version(_ major: Int) -> String { #"{"major":\#(major),"minor":0,"patch":2,"prerelease":null}"# }

    private func namesDevice(_ talk: Dialogue) -> Bool {
        let form = talk.words.last ?? ""
        #expect(form.contains("name=\"fileCreatedAt\"") && form.contains("name=\"assetData\""))
        return form.contains("name=\"deviceId\"") && form.contains("name=\"deviceAssetId\"")
    }

    private func forms(_ talk: Dialogue) -> Int { talk.lines.count { $0 == "POST https://i/api/assets" } }

    @Test(arguments: [(1, true), (2, true), (3, false), (4, false)])
    func `the version is requested once and decides the form`(_ major: Int, _ namesDevice: Bool) {
        var talk = Dialogue(plan(version: nil))
        talk.hear(200, [:], verdict("accept"))
        talk.hear(200, [:], version(major))
        #expect(talk.lines.last == "GET https://i/api/server/version")
        talk.hear(201, [:], #"{"id":"7","status":"created"}"#)
        #expect(self.namesDevice(talk) == namesDevice && talk.machine.knowledge.immichVersion == major)
        talk.hear(200, [:], verdict("reject", duplicate))
        #expect(talk.outcome == .finished(remoteURL: "https://i/photos/7"))
        // The next upload uses the version that this upload found.
        var next = plan(version: nil)
        next.knowledge = talk.machine.knowledge
        talk = Dialogue(next)
        talk.hear(200, [:], verdict("accept"))
        talk.hear(201, [:], #"{"id":"8","status":"created"}"#)
        #expect(self.namesDevice(talk) == namesDevice && !talk.lines.contains { $0.hasPrefix("GET") })
    }

    @Test func `the version is not requested for a photo that Immich has`() {
        var talk = Dialogue(plan(version: nil))
        talk.hear(200, [:], verdict("reject", duplicate))
        #expect(talk.lines.count == 1 && talk.outcome == .finished(remoteURL: "https://i/photos/7"))
    }

    @Test(arguments: [(2, 3), (3, 2), (1, 4)])
    func `a remembered version is requested again after a refusal, because the server can be updated`(_ old: Int, _ new: Int) {
        var talk = Dialogue(plan(version: old))
        talk.hear(200, [:], verdict("accept"))
        talk.hear(400, [:], #"{"message":"Validation failed","errors":[{"code":"unrecognized_keys","keys":["deviceId"]}]}"#)
        let before = namesDevice(talk)
        talk.hear(200, [:], version(new))
        talk.hear(201, [:], #"{"id":"7","status":"created"}"#)
        #expect(namesDevice(talk) != before && talk.machine.knowledge.immichVersion == new)
        talk.hear(200, [:], verdict("reject", duplicate))
        #expect(talk.outcome == .finished(remoteURL: "https://i/photos/7") && forms(talk) == 2)
    }

    @Test(arguments: [2, 3]) func `a refusal that another form cannot help is final after one form`(_ major: Int) {
        let refusal = #"{"message":["assetData must be a photo","fileCreatedAt is too old"],"statusCode":400}"#
        // The version is stored, and the server still has this version.
        var talk = Dialogue(plan(version: major))
        talk.hear(200, [:], verdict("accept"))
        talk.hear(400, [:], refusal)
        talk.hear(200, [:], version(major))
        #expect(forms(talk) == 1 && talk.message?.contains("assetData must be a photo; fileCreatedAt is too old") == true)
        // The version is not yet known.
        talk = Dialogue(plan(version: nil))
        talk.hear(200, [:], verdict("accept"))
        talk.hear(200, [:], version(major))
        talk.hear(400, [:], refusal)
        #expect(forms(talk) == 1 && talk.message?.contains("assetData must be a photo; fileCreatedAt is too old") == true)
    }

    /// Responses that do not contain a valid version.
    @Test(arguments: [
        (404, #"{"message":"Cannot GET /api/server/version"}"#), (200, "<html>log in</html>"), (200, #"{"major":0}"#), (500, ""),
        (200, #"{"major":70000}"#), (200, #"{"major":"three"}"#), (401, #"{"message":"Authentication required"}"#), (302, ""),
        (429, ""),
    ])
    func `without a version the form is sent once more without the names of the device`(_ status: Int, _ body: String) {
        var talk = Dialogue(plan(version: nil))
        talk.hear(200, [:], verdict("accept"))
        talk.hear(status, [:], body)
        talk.hear(400, [:], #"{"message":"Validation failed"}"#)
        #expect(namesDevice(talk) && talk.machine.knowledge.immichVersion == nil)
        talk.hear(201, [:], #"{"id":"7","status":"created"}"#)
        #expect(!namesDevice(talk))
        talk.hear(200, [:], verdict("reject", duplicate))
        #expect(talk.outcome == .finished(remoteURL: "https://i/photos/7"))
    }

    @Test func `both forms refused end the upload with the reason`() {
        var talk = Dialogue(plan(version: nil))
        talk.hear(200, [:], verdict("accept"))
        talk.hear(404)
        for _ in 0..<2 { talk.hear(400, [:], #"{"message":"Unsupported file type"}"#) }
        #expect(talk.message?.contains("Unsupported file type") == true && forms(talk) == 2)
    }

    @Test func `the request for the version is repeated after a lost connection`() {
        var talk = Dialogue(plan(version: nil))
        talk.hear(200, [:], verdict("accept"))
        talk.hear(0)
        talk.hear(200, [:], version(3))
        talk.hear(201, [:], #"{"id":"7"}"#)
        #expect(!namesDevice(talk) && forms(talk) == 1)
    }

    /// Tests the date pattern of Immich 3. The pattern does not check the calendar.
    @Test(arguments: [-1.0, 0, 0.5, 951_827_696, 1_800_000_000.999, 253_402_300_799, 253_402_300_800, .nan])
    func `times are ISO 8601 with an offset`(_ seconds: Double) throws {
        var plan = plan(version: 3)
        plan.order.modifiedAt = Date(timeIntervalSince1970: seconds)
        var talk = Dialogue(plan)
        talk.hear(200, [:], verdict("accept"))
        talk.hear(201, [:], #"{"id":"7"}"#)
        let times = (talk.words.last ?? "").matches(of: /Modified|Created/)
        let valid = (talk.words.last ?? "").matches(of: /\r\n\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)\r\n/)
        #expect(times.count == 2 && valid.count == 2, "\(talk.words)")
    }
}
