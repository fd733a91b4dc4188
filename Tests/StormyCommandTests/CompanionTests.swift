import BackgroundTasksTesting
import Foundation
import ServerScripts
import Testing

@testable import Stormy

/// Tests that files that belong together are uploaded together: the photo and the video of a Live Photo, and sidecars.
@Suite(.timeLimit(.minutes(30))) struct CompanionTests {
    private static let first = "2B9A6DB0-5C3C-4E32-9E0A-0F7A6B8C1D2E"
    private static let second = "7F1C2D3E-4B5A-6978-8796-A5B4C3D2E1F0"

    private static let keeping = PhotoHome.destination() + "location = \"keep\"\n"
    private static let xmp = Data("<x:xmpmeta xmlns:x=\"adobe:ns:meta/\"><rdf:RDF></rdf:RDF></x:xmpmeta>".utf8)

    private static func google(_ timestamp: Int) -> Data {
        Data(
            """
            {"title":"a.jpg","photoTakenTime":{"timestamp":"\(timestamp)","formatted":"x"},
             "geoData":{"latitude":48.1,"longitude":11.5,"altitude":0.0}}
            """.utf8)
    }

    private func playImmich(_ body: @Sendable (VirtualHome, ImmichStore) async throws -> Void) async throws {
        try await PhotoHome.play { home, _ in
            let store = ImmichStore()
            home.server.mount(store)
            let key = try home.writeSecret(ImmichStore.key, to: "immich-key")
            try home.configure(
                PhotoHome.destination("immich", VirtualHome.origin + "/immich")
                    + "token_file = \"\(key.path)\"\nlocation = \"keep\"\n")
            try await body(home, store)
        }
    }

    private func setTime(_ seconds: Double, of file: URL) throws {
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSince1970: seconds)], ofItemAtPath: file.path)
    }

    // MARK: Live Photos

    @Test func `a photo brings the video with its content identifier`() async throws {
        try await PhotoHome.play { home, store in
            let photo = try home.write(LivePhotoFiles.photo("1", identifier: Self.first), to: "camera/IMG_1.JPG")
            try setTime(1_000_000, of: photo)
            try home.write(LivePhotoFiles.video("1", identifier: Self.first), to: "camera/IMG_1.MOV")
            let upload = try await home.stormy("upload", "--wait", photo.path)
            #expect(upload.status == 0 && upload.output.contains("Queued 1 photo and 1 companion file for home."), "\(upload)")
            #expect(upload.output.contains("Uploaded 1 photo and 1 companion file, "), "\(upload)")
            #expect(store.arrived == ["IMG_1.JPG", "IMG_1.MOV"])
        }
    }

    @Test func `a folder is searched for a video with another name`() async throws {
        try await PhotoHome.play { home, store in
            try home.write(LivePhotoFiles.photo("1", identifier: Self.first), to: "camera/IMG_1.JPG")
            try home.write(LivePhotoFiles.video("2", identifier: Self.second), to: "camera/IMG_1.MOV")
            try home.write(LivePhotoFiles.video("1", identifier: Self.first), to: "camera/IMG_1 2.MOV")
            let upload = try await home.stormy("upload", "--recursive", "--wait", home.camera.path)
            #expect(upload.status == 0 && upload.errors.contains("1 other file was skipped"), "\(upload)")
            #expect(store.arrived == ["IMG_1 2.MOV", "IMG_1.JPG"])
        }
    }

    @Test(arguments: [(2.0, 3, true), (600, 3, false), (2, 60, false)])
    func `without an identifier the name, the time and the length decide`(
        _ distance: Double, _ seconds: Int, _ isPair: Bool
    ) async throws {
        try await PhotoHome.play { home, store in
            let photo = try home.picture("IMG_1.jpg")
            let video = try home.write(LivePhotoFiles.video("1", seconds: seconds), to: "camera/IMG_1.mov")
            try setTime(1_780_000_000, of: photo)
            try setTime(1_780_000_000 + distance, of: video)
            #expect(try await home.stormy("upload", "--wait", photo.path).status == 0)
            #expect(store.arrived == (isPair ? ["IMG_1.jpg", "IMG_1.mov"] : ["IMG_1.jpg"]))
        }
    }

    /// 1,784,023,200 is 2026-07-14 10:00:00 UTC.
    @Test(arguments: [
        ("+02:00", 1_784_023_203, true), ("+02:00", 1_784_026_800, false), (nil, 1_784_023_203, true),
        (nil, 1_784_023_203 + 5 * 3_600, true), (nil, 1_784_023_263, false),
    ]) func `the times in the files have priority over the times of the files`(
        _ offset: String?, _ created: Int, _ isPair: Bool
    ) async throws {
        try await PhotoHome.play { home, _ in
            let photo = LivePhotoFiles.photo("1", date: "2026:07:14 12:00:00", offset: offset)
            let first = try home.write(photo, to: "camera/IMG_1.jpg").path
            let second = try home.write(LivePhotoFiles.video("1", created: created), to: "camera/IMG_1.mov").path
            #expect(LivePhoto.isPair(photo: first, video: second) == isPair)
        }
    }

    @Test func `a video that is named alone brings its photo`() async throws {
        try await PhotoHome.play { home, store in
            try home.write(LivePhotoFiles.photo("1", identifier: Self.first), to: "camera/IMG_1.HEIC.jpg")
            try home.write(LivePhotoFiles.photo("1", identifier: Self.first), to: "camera/IMG_1.jpg")
            let video = try home.write(LivePhotoFiles.video("1", identifier: Self.first), to: "camera/IMG_1.mov")
            #expect(try await home.stormy("upload", "--wait", video.path).status == 0)
            #expect(store.arrived == ["IMG_1.jpg", "IMG_1.mov"])
        }
    }

    @Test func `a photo that is held back holds back its video`() async throws {
        try await PhotoHome.play { home, store in
            let photo = try home.write(OtherPicture.heic, to: "camera/IMG_1.HEIC")
            try home.write(LivePhotoFiles.video("1"), to: "camera/IMG_1.MOV")
            let upload = try await home.stormy("upload", "--wait", photo.path)
            #expect(upload.status == 77, "\(upload)")
            #expect((upload.output + upload.errors).contains("IMG_1.HEIC belongs to this file and is held back"), "\(upload)")
            #expect(store.arrived.isEmpty)
            let keep = try await home.stormy("upload", "--wait", "--keep-location", photo.path)
            #expect(keep.status == 0 && store.arrived == ["IMG_1.HEIC", "IMG_1.MOV"], "\(keep)")
        }
    }

    @Test func `a server that has the name gives photo and video equal names`() async throws {
        try await PhotoHome.play(Self.keeping) { home, store in
            for name in ["a", "b"] {
                let identifier = name == "a" ? Self.first : Self.second
                try home.write(LivePhotoFiles.photo(name, identifier: identifier), to: "camera/\(name)/IMG_1.jpg")
                try home.write(LivePhotoFiles.video(name, identifier: identifier), to: "camera/\(name)/IMG_1.mov")
                try home.write(Self.xmp + Data(name.utf8), to: "camera/\(name)/IMG_1.jpg.xmp")
            }
            // The path differs from the absolute path of the files.
            #expect(try await home.stormy("upload", "--wait", "--recursive", home.camera.path + "/.").status == 0)
            #expect(
                store.arrived == [
                    "IMG_1-1.jpg", "IMG_1-1.jpg.xmp", "IMG_1-1.mov", "IMG_1.jpg", "IMG_1.jpg.xmp", "IMG_1.mov",
                ])
            for (photo, video) in [("IMG_1.jpg", "IMG_1.mov"), ("IMG_1-1.jpg", "IMG_1-1.mov")] {
                let names = ["a", "b"].filter {
                    store.contents(of: photo) == LivePhotoFiles.photo($0, identifier: $0 == "a" ? Self.first : Self.second)
                }
                #expect(
                    names.map { LivePhotoFiles.video($0, identifier: $0 == "a" ? Self.first : Self.second) }
                        == [store.contents(of: video)])
            }
            let audit = try await home.stormy("audit", "--verify", home.camera.path)
            #expect(audit.status == 0 && audit.output.contains("4 photos for home: 4 uploaded."), "\(audit)")
        }
    }

    @Test func `Immich receives the identifier of the video, and the XMP file in the form of the photo`() async throws {
        try await playImmich { home, store in
            let photo = LivePhotoFiles.photo("1", identifier: Self.first, date: "2026:07:14 12:00:00", offset: "+02:00")
            let video = LivePhotoFiles.video("1", identifier: Self.first)
            let file = try home.write(photo, to: "camera/IMG_1.jpg")
            try home.write(video, to: "camera/IMG_1.mov")
            let xmp = Self.xmp + Data("<exif:DateTimeOriginal>2020-01-02T03:04:05</exif:DateTimeOriginal>".utf8)
            try home.write(xmp, to: "camera/IMG_1.xmp")
            let upload = try await home.stormy("upload", "--wait", file.path)
            #expect(upload.status == 0, "\(upload)")
            #expect(upload.errors.contains("taken on 2026-07-14, and IMG_1.xmp contains the date 2020-01-02"), "\(upload)")
            #expect(store.livePhotos.map(\.photo) == [photo] && store.livePhotos.map(\.video) == [video])
            #expect(store.sidecars == [xmp])
            #expect(store.times.contains("2026-07-14T10:00:00Z"), "\(store.times)")
            let rows = try await home.rows("transfers")
            let receipts = rows.compactMap { $0["receipt"] as? [String: Any] }
            #expect(receipts.contains { $0["takenAtSource"] as? String == "exif" })
            #expect(receipts.contains { $0["takenAt"] as? String == "2026-07-14T12:00:00+02:00" }, "\(receipts)")
        }
    }

    @Test(arguments: [true, false]) func `Immich links a video that arrives after its photo`(_ mayLink: Bool) async throws {
        try await playImmich { home, store in
            let photo = LivePhotoFiles.photo("1", identifier: Self.first)
            let file = try home.write(photo, to: "camera/IMG_1.jpg").path
            #expect(try await home.stormy("upload", "--wait", file).status == 0)
            #expect(store.livePhotos.isEmpty)
            let video = LivePhotoFiles.video("1", identifier: Self.first)
            try home.write(video, to: "camera/IMG_1.mov")
            if !mayLink { home.server.route("PUT", "/immich/api/assets/*", .status(403)) }
            let upload = try await home.stormy("upload", "--wait", file)
            #expect(upload.status == 0 && store.files.count == 2, "\(upload)")
            if mayLink {
                #expect(store.livePhotos.map(\.photo) == [photo] && store.livePhotos.map(\.video) == [video])
            } else {
                #expect(upload.errors.contains("Immich did not link the video to its photo"), "\(upload)")
            }
        }
    }

    @Test func `a photo that is added again after its video arrived is linked to the video`() async throws {
        try await playImmich { home, store in
            let photo = try home.write(LivePhotoFiles.photo("1", identifier: Self.first), to: "camera/IMG_1.jpg").path
            try home.write(LivePhotoFiles.video("1", identifier: Self.first), to: "camera/IMG_1.mov")
            store.refuse(fileNamed: "IMG_1.jpg")
            #expect(try await home.stormy("upload", "--wait", photo).status == 69)
            #expect(try await home.stormy("transfers", "clear").status == 0)
            store.refuse(fileNamed: nil)
            let again = try await home.stormy("upload", "--wait", photo)
            #expect(again.status == 0 && store.livePhotos.count == 1, "\(again)")
        }
    }

    @Test func `a photo is not sent to Immich if its video is refused`() async throws {
        try await playImmich { home, store in
            let photo = try home.write(LivePhotoFiles.photo("1", identifier: Self.first), to: "camera/IMG_1.jpg")
            try home.write(LivePhotoFiles.video("1", identifier: Self.first), to: "camera/IMG_1.mov")
            store.refuse(fileNamed: "IMG_1.mov")
            let upload = try await home.stormy("upload", "--wait", photo.path)
            #expect(upload.status == 69, "\(upload)")
            #expect(upload.errors.contains("IMG_1.mov was not uploaded, and this file belongs to it."), "\(upload)")
            #expect(store.files.isEmpty)
            store.refuse(fileNamed: nil)
            let again = try await home.stormy("upload", "--wait", photo.path)
            #expect(again.status == 0 && store.livePhotos.count == 1, "\(again)")
        }
    }

    @Test func `a record of Immich does not prove that Immich has the file`() async throws {
        try await playImmich { home, store in
            let photo = try home.picture("a.jpg").path
            #expect(try await home.stormy("upload", "--wait", photo).status == 0)
            #expect(try await home.stormy("audit", "--safe-to-delete", photo).output == photo + "\n")
            home.server.route("GET", "/immich/api/assets/*", .status(404))
            let lost = try await home.stormy("audit", "--safe-to-delete", photo)
            #expect(lost.output.isEmpty && lost.errors.contains("not proven to be on the server: 1 photo"), "\(lost)")
            _ = store
        }
    }

    @Test(arguments: [
        ("+02:00", "2026-07-14T10:00:00Z"), ("-03:30", "2026-07-14T15:30:00Z"), ("Z", "2026-07-14T12:00:00Z"), ("+99:99", nil),
        ("+0530", nil),
    ]) func `the offset of the Exif date is used`(_ offset: String, _ expected: String?) throws {
        let date = try #require(
            PhotoDate.inExif(LivePhotoFiles.photo("a", date: "2026:07:14 12:00:00", offset: offset)))
        #expect(date.source == (expected == nil ? .exifWithoutOffset : .exif))
        if let expected { #expect(date.time.date.formatted(.iso8601) == expected) }
    }

    @Test func `the video follows a photo that is added again after it was cancelled`() async throws {
        try await PhotoHome.play { home, store in
            let photo = try home.write(LivePhotoFiles.photo("1", identifier: Self.first), to: "camera/IMG_1.jpg").path
            try home.write(LivePhotoFiles.video("1", identifier: Self.first), to: "camera/IMG_1.mov")
            home.server.route(nil, "/photos/*", .status(503))
            #expect(try await home.stormy("upload", photo).status == 0)
            try await home.driver.advance(by: .seconds(1))
            let listed = try await home.rows("transfers")
            let video = try #require(listed.first { ($0["file"] as? String)?.hasSuffix(".mov") == true })
            #expect(video["note"] as? String == "begins after the upload of IMG_1.jpg" && video["nextAttemptAt"] is NSNull)
            let id = try #require(listed.first { ($0["file"] as? String)?.hasSuffix(".jpg") == true }?["id"] as? String)
            #expect(try await home.stormy("transfers", "cancel", id).status == 0)
            try await home.driver.advance(by: .seconds(1))
            home.server.mount(store)
            let again = try await home.stormy("upload", "--wait", photo)
            #expect(again.status == 0, "\(again)")
            #expect(store.arrived == ["IMG_1.jpg", "IMG_1.mov"])
        }
    }

    // MARK: Sidecars

    @Test func `sidecars go with their photo, and equal sidecars of two photos both arrive`() async throws {
        try await PhotoHome.play(Self.keeping) { home, store in
            try home.picture("a.jpg")
            try home.write(Self.xmp, to: "camera/a.jpg.xmp")
            try home.write(Self.google(1_700_000_000), to: "camera/a.jpg.supplemental-metadata.json")
            try home.picture("b.jpg")
            try home.write(Self.xmp, to: "camera/b.xmp")
            try home.write(Data("{}".utf8), to: "camera/b.jpg.json")
            let upload = try await home.stormy("upload", "--wait", "--recursive", home.camera.path)
            #expect(upload.status == 0 && upload.output.contains("Queued 2 photos and 3 companion files"), "\(upload)")
            #expect(upload.errors.contains("1 other file was skipped"), "\(upload)")
            #expect(
                store.arrived == ["a.jpg", "a.jpg.supplemental-metadata.json", "a.jpg.xmp", "b.jpg", "b.xmp"])
            let again = try await home.stormy("upload", "--wait", "--recursive", home.camera.path)
            #expect(again.status == 0 && store.arrived.count == 5, "\(again)")
        }
    }

    @Test func `a sidecar with a location is not sent if the location is removed`() async throws {
        try await PhotoHome.play { home, store in
            let photo = try home.picture("a.jpg")
            try home.write(Self.google(1_700_000_000), to: "camera/a.jpg.json")
            let upload = try await home.stormy("upload", "--wait", photo.path)
            #expect(upload.status == 0, "\(upload)")
            #expect(
                (upload.output + upload.errors).contains("a.jpg.json is not uploaded, because the file may contain a location"))
            #expect(store.arrived == ["a.jpg"])
        }
    }

    @Test func `a file with the name of a sidecar and other content is not sent`() async throws {
        try await PhotoHome.play(Self.keeping) { home, store in
            let photo = try home.picture("a.jpg")
            let secret = try home.writeSecret("-----BEGIN OPENSSH PRIVATE KEY-----", to: "key")
            try FileManager.default.createSymbolicLink(
                at: home.camera.appendingPathComponent("a.jpg.xmp"), withDestinationURL: secret)
            let upload = try await home.stormy("upload", "--wait", photo.path)
            #expect(upload.status == 0 && upload.errors.contains("a.jpg.xmp is not uploaded, because"), "\(upload)")
            #expect(store.arrived == ["a.jpg"])
        }
    }

    @Test(arguments: [String.Encoding.utf16, .utf32, .utf32LittleEndian])
    func `an XMP file in another encoding leaks no location`(
        _ encoding: String.Encoding
    ) async throws {
        try await PhotoHome.play { home, store in
            let photo = try home.picture("a.jpg").path
            let text = "<x:xmpmeta><rdf:RDF exif:GPSLatitude=\"52,30.5N\" exif:GPSLongitude=\"13,24.5E\"/></x:xmpmeta>"
            try home.write(#require(text.data(using: encoding)), to: "camera/a.jpg.xmp")
            #expect(try await home.stormy("upload", "--wait", photo).status == 0)
            #expect(store.arrived == ["a.jpg"])
        }
    }

    @Test func `the sidecars of a copied folder are not sent again, and new sidecars keep the number of their photo`()
        async throws
    {
        try await PhotoHome.play(Self.keeping) { home, store in
            try Data("other".utf8).write(to: store.directory.appendingPathComponent("a.jpg"))
            let photo = try home.picture("a.jpg")
            try home.write(Self.xmp, to: "camera/a.jpg.xmp")
            #expect(try await home.stormy("upload", "--wait", photo.path).status == 0)
            let copy = home.folder.appendingPathComponent("copy")
            try FileManager.default.copyItem(at: home.camera, to: copy)
            try home.write(Self.google(1_700_000_000), to: "copy/a.jpg.json")
            let again = try await home.stormy("upload", "--wait", "--recursive", copy.path)
            #expect(again.status == 0 && again.output.contains("Queued 1 companion file for home."), "\(again)")
            #expect(store.arrived == ["a-1.jpg", "a-1.jpg.json", "a-1.jpg.xmp", "a.jpg"])
        }
    }

    @Test func `a Live Photo whose video is not complete is not sent`() async throws {
        try await PhotoHome.play { home, store in
            let photo = try home.write(LivePhotoFiles.photo("1", identifier: Self.first), to: "camera/IMG_1.jpg").path
            let video = LivePhotoFiles.video("1", identifier: Self.first)
            for part in [Data(), video.prefix(1_000), video.dropLast(10)] {
                try home.write(Data(part), to: "camera/IMG_1.mov")
                let upload = try await home.stormy("upload", "--wait", photo)
                #expect(upload.status == 74 && upload.errors.contains("it is not a complete video"), "\(upload)")
            }
            try home.write(video, to: "camera/IMG_1.mov")
            #expect(try await home.stormy("upload", "--wait", photo).status == 0)
            #expect(store.arrived == ["IMG_1.jpg", "IMG_1.mov"])
        }
    }

    @Test func `Immich receives the XMP file with the name of the photo, and the other file is named`() async throws {
        try await playImmich { home, store in
            let photo = try home.picture("a.jpg").path
            try home.write(Self.xmp + Data("<!-- photo -->".utf8), to: "camera/a.jpg.xmp")
            try home.write(Self.xmp, to: "camera/a.xmp")
            let upload = try await home.stormy("upload", "--wait", "--recursive", home.camera.path)
            #expect(
                upload.status == 0 && upload.errors.contains("a.xmp is not uploaded, because Immich accepts one"), "\(upload)")
            #expect(!upload.errors.contains("skipped") && store.sidecars == [Self.xmp + Data("<!-- photo -->".utf8)])
            _ = photo
        }
    }

    @Test func `a companion whose name is taken is reported`() async throws {
        try await PhotoHome.play(Self.keeping) { home, store in
            let photo = try home.picture("a.jpg").path
            try home.write(Self.xmp, to: "camera/a.jpg.xmp")
            try Data("other".utf8).write(to: store.directory.appendingPathComponent("a.jpg.xmp"))
            let upload = try await home.stormy("upload", "--wait", photo)
            #expect(
                upload.status == 0 && upload.errors.contains("the server has another file with the name a.jpg.xmp"), "\(upload)")
        }
    }

    @Test func `the date of Google Photos is used if the photo has no date`() async throws {
        try await PhotoHome.play(Self.keeping + "path = \"{year}/\"\n") { home, store in
            let photo = try home.picture("a.jpg")
            try home.write(Self.google(1_500_000_000), to: "camera/a.jpg.json")
            let other = try home.picture("b.jpg")
            try setTime(1_600_000_000, of: other)
            #expect(try await home.stormy("upload", "--wait", photo.path, other.path).status == 0)
            #expect(store.arrived == ["2017/a.jpg", "2017/a.jpg.json", "2020/b.jpg"])
            let sources = try await home.rows("transfers").compactMap { row in
                (row["receipt"] as? [String: Any])?["takenAtSource"] as? String
            }
            #expect(Set(sources) == ["google", "file"])
        }
    }

    @Test(arguments: [
        ("IMG.jpg", "IMG.jpg.json"), ("IMG.jpg", "IMG.jpg.supplemental-metadata.json"), ("IMG(1).jpg", "IMG.jpg(1).json"),
        ("IMG(1).jpg", "IMG.jpg.supplemental-metadata(1).json"),
        ("PXL_20230514_101112345.PORTRAIT.jpg", "PXL_20230514_101112345.PORTRAIT.jpg.supplement.json"),
    ]) func `the names of Google's files are known`(_ photo: String, _ sidecar: String) {
        #expect(GoogleSidecar.names(of: photo).contains(sidecar), "\(GoogleSidecar.names(of: photo))")
    }

    // MARK: Watched folders

    @Test func `the history counts the photos of a watched folder, and not their companions`() async throws {
        try await PhotoHome.play(Self.keeping) { home, store in
            try FileManager.default.createDirectory(at: home.camera, withIntermediateDirectories: true)
            #expect(try await home.stormy("watch", "add", home.camera.path).status == 0)
            try home.write(LivePhotoFiles.photo("1", identifier: Self.first), to: "camera/IMG_1.jpg")
            try home.write(LivePhotoFiles.video("1", identifier: Self.first), to: "camera/IMG_1.mov")
            try home.write(Self.xmp, to: "camera/IMG_1.xmp")
            try await home.driver.examineFolders()
            try await home.driver.advance(by: .seconds(60))
            #expect(store.arrived == ["IMG_1.jpg", "IMG_1.mov", "IMG_1.xmp"])
            let details = try await home.rows("history").compactMap { $0["detail"] as? String }
            #expect(details.contains("1 photo queued") && details.contains("1 photo uploaded to home"), "\(details)")
        }
    }

    @Test func `a watched folder uploads the video that arrives later, with the name of its photo`() async throws {
        try await PhotoHome.play { home, store in
            try FileManager.default.createDirectory(at: home.camera, withIntermediateDirectories: true)
            #expect(try await home.stormy("watch", "add", home.camera.path).status == 0)
            try home.write(LivePhotoFiles.photo("1", identifier: Self.first), to: "camera/IMG_1.jpg")
            try await home.driver.examineFolders()
            try await home.driver.advance(by: .seconds(60))
            #expect(store.arrived == ["IMG_1.jpg"])
            try home.write(LivePhotoFiles.video("1", identifier: Self.first), to: "camera/IMG_1.mov")
            try home.write(LivePhotoFiles.video("2", identifier: Self.second), to: "camera/MVI_2.mov")
            try await home.driver.examineFolders()
            try await home.driver.advance(by: .seconds(60))
            #expect(store.arrived == ["IMG_1.jpg", "IMG_1.mov"])
        }
    }
}
