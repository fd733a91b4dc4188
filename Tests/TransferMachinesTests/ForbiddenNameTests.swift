import Foundation
import Testing

@testable import TransferMachines

/// Tests a server that forbids characters in names, for example Nextcloud with the rules of Windows.
@Suite struct ForbiddenNameTests {
    private func plan(_ kind: UploadKind = .nextcloud, _ name: String = "noon 12:00:00.jpg", _ size: Int64 = 6 << 20)
        -> UploadPlan
    {
        UploadPlan(
            kind: kind, collectionURL: "https://c/remote.php/dav/files/me/a", fileName: name, byteCount: size, token: "t",
            sha256: "abcdef12")
    }

    private let folder = "https://c/remote.php/dav/files/me/a/"

    private func refusal(_ words: String, exception: String = #"OCA\DAV\Connector\Sabre\Exception\InvalidPath"#) -> String {
        let escaped = words.replacing("&", with: "&amp;").replacing("<", with: "&lt;")
        return
            "<d:error xmlns:d='DAV:' xmlns:s='s'><s:exception>\(exception)</s:exception><s:message>\(escaped)</s:message></d:error>"
    }

    private func listed(_ sizes: [Int64]) -> String {
        "<multistatus>"
            + sizes.enumerated().map {
                "<response><href>x/0000\($0 + 1)</href><getcontentlength>\($1)</getcontentlength></response>"
            }.joined()
            + "</multistatus>"
    }

    private static let english = #"":" is not allowed inside a file or folder name."#

    @Test func `chunks are sent once, and the MOVE is repeated with another name`() {
        var talk = Dialogue(plan())
        for status in [404, 201, 201, 201] { talk.hear(status) }
        talk.hear(400, [:], refusal(Self.english))
        talk.hear(404)
        talk.hear(207, [:], listed([5 << 20, 1 << 20]))
        talk.hear(201)
        let other = folder + "noon%2012_00_00.jpg"
        #expect(talk.header("Destination") == other)
        talk.hear(200, ["Content-Length": "\(6 << 20)"])
        #expect(talk.outcome == .finished(remoteURL: other), "\(talk.lines)")
        #expect(talk.lines.count { $0.hasPrefix("PUT") } == 2 && talk.lines.count { $0.hasPrefix("MOVE") } == 2)
        #expect(talk.machine.remark == "the server does not allow : in file names, so \"_\" replaces these characters")
    }

    @Test func `a server without forbidden characters keeps the name`() {
        var talk = Dialogue(plan())
        for status in [404, 201, 201, 201, 201] { talk.hear(status) }
        talk.hear(200, ["Content-Length": "\(6 << 20)"])
        #expect(talk.outcome == .finished(remoteURL: folder + "noon%2012%3A00%3A00.jpg") && talk.machine.remark == nil)
    }

    /// A response to HEAD has no body, so it contains no reason.
    @Test func `a HEAD that is answered with 400 does not end the upload`() {
        for kind in [UploadKind.nextcloud, .webdav, .put] {
            var talk = Dialogue(plan(kind, "a:b.jpg", 100))
            talk.hear(400)
            #expect(talk.outcome == .continue, "\(kind)")
            // A name without forbidden characters is refused for another reason, which may be temporary.
            talk = Dialogue(plan(kind, "a.jpg", 100))
            for _ in 1..<RetryPolicy.maximumRefusals { talk.hear(400) }
            #expect(talk.message == nil, "\(kind)")
            talk.hear(400)
            #expect(talk.message?.contains("400") == true, "\(kind)")
        }
    }

    @Test func `a new process continues with the other name`() throws {
        var talk = Dialogue(plan())
        for status in [404, 201, 201, 201] { talk.hear(status) }
        talk.hear(400, [:], refusal(Self.english))
        talk.hear(404)
        let saved = try #require(talk.memory)
        let kept = try JSONDecoder().decode(UploadMemory.self, from: JSONEncoder().encode(saved))
        #expect(kept == saved && kept.replaced == ":")
        talk = Dialogue(plan(), resuming: kept)
        talk.hear(404)
        #expect(talk.lines == ["HEAD \(folder)noon%2012_00_00.jpg"] && talk.machine.remark != nil)
        talk.hear(405)
        talk.hear(207, [:], listed([5 << 20, 1 << 20]))
        talk.hear(201)
        #expect(!talk.lines.contains { $0.hasPrefix("PUT") } && talk.header("Destination") == folder + "noon%2012_00_00.jpg")
    }

    @Test(arguments: [
        (Self.english, "a:b?c*.jpg", "a_b_c_.jpg"),
        (#""<" is not allowed inside a file or folder name."#, #"a<b>"c"|.jpg"#, "a_b__c__.jpg"),
        ("„#“ ist in Datei- oder Ordnernamen nicht erlaubt.", "a#b.jpg", "a_b.jpg"),
        ("«\u{A0}%\u{A0}» n'est pas autorisé dans un nom de fichier.", "a%b.jpg", "a_b.jpg"),
        ("\"\u{1F327}\" is not allowed inside a file or folder name.", "a\u{1F327}b.jpg", "a_b.jpg"),
        ("File name contains at least one invalid character", "a|b.jpg", "a_b.jpg"),
        (Self.english, "a:\u{301}b.jpg", "a_\u{301}b.jpg"),
    ])
    func `the characters of Windows and the character that the server names are replaced`(
        _ words: String, _ name: String, _ other: String
    ) {
        var talk = Dialogue(plan(.nextcloud, name, 100))
        for status in [404, 201, 201] { talk.hear(status) }
        talk.hear(400, [:], refusal(words))
        talk.hear(404)
        #expect(talk.lines.last == "HEAD " + folder + CollectionAddress.encoded(other, keeping: ""))
    }

    @Test(arguments: [
        (Self.english, "plain.jpg"), ("\"jpg\" is a forbidden file type.", "a.jpg"),
        ("\"a\" is not allowed.", "a.jpg"), ("\".\" is not allowed.", "a.jpg"),
    ])
    func `a refusal that another character cannot help is shown`(_ words: String, _ name: String) {
        var talk = Dialogue(plan(.nextcloud, name, 100))
        for status in [404, 201, 201] { talk.hear(status) }
        for _ in 0..<40 where talk.message == nil {
            guard case .send(let request, _, _) = talk.machine.next() else { break }
            if request.method == "MOVE" {
                talk.hear(400, [:], refusal(words))
            } else if request.method == "PROPFIND" {
                talk.hear(207, [:], listed([100]))
            } else {
                talk.hear(404)
            }
        }
        #expect(talk.message?.contains(words) == true, "\(talk.lines) \(talk.outcome as Any)")
        #expect(!talk.lines.contains { $0.contains("_") })
    }

    private static let long = String(repeating: "é", count: 123) + ".jpg"

    @Test(arguments: [
        ("\"con\" is a forbidden file or folder name.", "CON.jpg", "CON_.jpg"),
        ("»com1« ist ein verbotener Name.", "com1.tar.gz", "com1_.tar.gz"),
        ("\".htaccess\" is a forbidden file or folder name.", ".htaccess", ".htaccess_"),
        ("Filenames must not end with \".\"", "end.", "end_"), ("Filenames must not end with \" \"", "tail  ", "tail__"),
        ("\".part\" is a forbidden file type.", "x.jpg.part", "x.jpg.part_"),
        ("« .lnk » est un type de fichier interdit.", "a.lnk", "a.lnk_"),
        ("Filename is too long", Self.long, String(repeating: "é", count: 118) + ".jpg"),
    ])
    func `a name that Windows does not take is sent once more with another name`(
        _ words: String, _ name: String, _ other: String
    ) throws {
        var talk = Dialogue(plan(.nextcloud, name, 100))
        for status in [404, 201, 201] { talk.hear(status) }
        talk.hear(400, [:], refusal(words))
        talk.hear(404)
        #expect(talk.lines.last == "HEAD " + folder + CollectionAddress.encoded(other, keeping: ""))
        #expect(talk.machine.remark?.contains("does not allow") == true)
        let saved = try #require(talk.memory)
        let kept = try JSONDecoder().decode(UploadMemory.self, from: JSONEncoder().encode(saved))
        var again = Dialogue(plan(.nextcloud, name, 100), resuming: kept)
        again.hear(404)
        #expect(again.lines == ["HEAD " + folder + CollectionAddress.encoded(other, keeping: "")])
    }

    @Test func `a name with characters and a reserved name is sent with both changes`() {
        var talk = Dialogue(plan(.nextcloud, "con.a:b.jpg", 100))
        for status in [404, 201, 201] { talk.hear(status) }
        talk.hear(400, [:], refusal(Self.english))
        talk.hear(404)
        talk.hear(207, [:], listed([100]))
        talk.hear(400, [:], refusal("\"con\" is a forbidden file or folder name."))
        talk.hear(404)
        #expect(talk.lines.last == "HEAD \(folder)con_.a_b.jpg", "\(talk.lines)")
        #expect(talk.lines.count { $0.hasPrefix("PUT") } == 1)
    }

    @Test(arguments: [("con_.jpg", "con"), ("plain.jpg", "plain.jpg")])
    func `a MOVE with a name that stays refused is sent once`(_ name: String, _ quoted: String) {
        var talk = Dialogue(plan(.nextcloud, name, 100))
        for status in [404, 201, 201] { talk.hear(status) }
        talk.hear(400, [:], refusal("\"\(quoted)\" is a forbidden file or folder name."))
        #expect(talk.message?.contains("is a forbidden file or folder name") == true)
        #expect(talk.lines.count { $0.hasPrefix("MOVE") } == 1 && talk.lines.count { $0.hasPrefix("PUT") } == 1)
    }

    @Test func `a server that refuses every name receives few names`() {
        var talk = Dialogue(plan(.nextcloud, "a:b#c.jpg", 100))
        for status in [404, 201, 201] { talk.hear(status) }
        for _ in 0..<60 where talk.message == nil {
            guard case .send(let request, _, _) = talk.machine.next() else { break }
            switch request.method {
            case "MOVE": talk.hear(400, [:], refusal(Self.english))
            case "PROPFIND": talk.hear(207, [:], listed([100]))
            default: talk.hear(404)
            }
        }
        #expect(talk.message?.contains("is not allowed inside a file") == true)
        #expect(
            talk.lines.count { $0.hasPrefix("MOVE") } <= 2 + UploadPlace.maximumCreations
                && talk.lines.count { $0.hasPrefix("PUT") } == 1)
    }

    @Test func `an exception about something else does not change the name`() {
        var talk = Dialogue(plan(.nextcloud, "a:b.jpg", 100))
        for status in [404, 201, 201] { talk.hear(status) }
        talk.hear(403, [:], refusal(Self.english, exception: #"Sabre\DAV\Exception\Forbidden"#))
        #expect(talk.message?.contains("is not allowed inside") == true && talk.machine.remark == nil)
    }

    @Test func `a temporary file of WebDAV is moved to the other name`() {
        var talk = Dialogue(plan(.webdav, "a:b.jpg", 100))
        talk.hear(404)
        talk.hear(201)
        talk.hear(200, ["Content-Length": "100"])
        talk.hear(400, [:], refusal(Self.english))
        talk.hear(404)
        talk.hear(201)
        #expect(talk.header("Destination") == folder + "a_b.jpg" && talk.memory?.replaced == ":")
        talk.hear(200, ["Content-Length": "100"])
        #expect(talk.outcome == .finished(remoteURL: folder + "a_b.jpg") && talk.lines.count { $0.hasPrefix("PUT") } == 1)
    }

    @Test func `a plain PUT is repeated with the other name, which is looked at first`() {
        var talk = Dialogue(plan(.put, "a:b.jpg", 100))
        talk.hear(404)
        talk.hear(400, [:], refusal(Self.english))
        talk.hear(200, ["Content-Length": "7"])
        talk.hear(404)
        talk.hear(201)
        #expect(talk.lines.last == "PUT \(folder)a_b-1.jpg 0+100" && talk.machine.remark != nil)
    }
}
