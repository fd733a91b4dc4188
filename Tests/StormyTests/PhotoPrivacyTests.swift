import Foundation
import Synchronization
import Testing

@testable import Stormy

/// Tests every verdict, every format, and every result of the search for locations. No photo is uploaded with its location unless
/// the user is informed.
@Suite struct PhotoPrivacyTests {
    private func ends(_ format: PhotoFormat?, _ verdict: PhotoCleaner.Verdict, _ looksLocated: Bool) -> PhotoPrivacy {
        PhotoPrivacy(format: format, verdict: verdict, looksLocated: looksLocated)
    }

    private func isHeld(_ privacy: PhotoPrivacy) -> Bool {
        if case .hold(let reason) = privacy { return reason.contains("--keep-location") }
        return false
    }

    @Test(arguments: PhotoFormat.allCases + [nil])
    func `a photo that still appears to contain a location is held`(_ format: PhotoFormat?) {
        for verdict in [PhotoCleaner.Verdict.unreadable("x"), .notCleaned("x"), .interrupted] {
            #expect(isHeld(ends(format, verdict, true)))
        }
    }

    @Test(arguments: PhotoFormat.allCases)
    func `a photo that cannot be cleaned is held, an unreadable one depends on its format`(_ format: PhotoFormat) {
        #expect(isHeld(ends(format, .notCleaned("the program photo-cleaner is not installed"), false)))
        #expect(
            ends(format, .clean(["GPS directory of Exif"]), false) == .send(removed: ["GPS directory of Exif"], note: nil))
        let unreadable = ends(format, .unreadable("damaged"), false)
        switch format {
        case .heic, .avif, .jxl, .raw: #expect(isHeld(unreadable))
        case .jpeg, .png, .webp, .tiff:
            guard case .send([], let note?) = unreadable else {
                Issue.record("\(unreadable)")
                return
            }
            #expect(note.contains("damaged"))
        }
    }

    /// The cleaner needs a folder in the spool. In this test the folder cannot be created.
    @Test func `a photo is not judged if its cleaner cannot be started`() throws {
        let copy = URL(fileURLWithPath: "/nowhere/spool/copy")
        let error = try #require(throws: PhotoUploadError.self) { try PhotoCleaner(program: "/bin/true").clean(copy) }
        guard case .cannotRead(copy.path, let reason) = error else {
            Issue.record("\(error)")
            return
        }
        #expect(!reason.contains("--keep-location"))
    }

    /// Provides a folder with a file, and a program that reports each file as clean.
    private func withCleaner(_ body: (_ program: String, _ photo: URL) throws -> Void) throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("cleaner-" + UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let (program, photo) = (folder.appendingPathComponent("cleaner"), folder.appendingPathComponent("copy"))
        try Data("#!/bin/sh\nprintf 'clean\\0\\0'; exec cat > /dev/null\n".utf8).write(to: program)
        chmod(program.path, 0o700)
        try Data("photo".utf8).write(to: photo)
        try body(program.path, photo)
    }

    /// The first attempt fails. For example, the cleaner was killed while it was idle, or the system has no memory for sockets.
    @Test(arguments: [ENOBUFS, EPIPE]) func `a photo is cleaned if its cleaner can be reached at the second attempt`(
        _ number: Int32
    ) throws {
        try withCleaner { program, photo throws -> Void in
            let attempts = Mutex(0)
            let cleaner = PhotoCleaner(program: program) { socket, bytes in
                let attempt = attempts.withLock { count in
                    count += 1
                    return count
                }
                guard attempt == 1 else { return send(socket, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL)) }
                errno = number
                return -1
            }
            #expect(try cleaner.clean(photo) == .clean([]))
            #expect(attempts.withLock { $0 } == 2)
            #expect(try Data(contentsOf: photo) == Data("photo".utf8))
        }
    }

    @Test func `a photo has no verdict if its cleaner cannot be reached`() throws {
        try withCleaner { program, photo throws -> Void in
            let cleaner = PhotoCleaner(program: program) { _, _ in
                errno = ENOBUFS
                return -1
            }
            let error = try #require(throws: PhotoUploadError.self) { try cleaner.clean(photo) }
            #expect(
                "\(error)" == "\(photo.path): the file could not be checked: No buffer space available. Run the command again")
            #expect(try Data(contentsOf: photo) == Data("photo".utf8))
        }
    }

    @Test func `a large film has more time to be cleaned than a photo`() {
        #expect(CleanerTimeLimit.processorTime(forBytes: 200_000) == 60.2)
        #expect(CleanerTimeLimit.processorTime(forBytes: 4 << 30) > 200)
        for count in [50 << 30, .max] as [Int64] { #expect(CleanerTimeLimit.processorTime(forBytes: count) == 600) }
    }

    @Test func `a cleaner that rarely gets a processor has time until it is done`() {
        var patience = CleanerTimeLimit(forBytes: 6_000_000, used: 100)
        var used = 100.0
        // For one hour, the cleaner gets a little processor time every 30 seconds.
        for second in 1...3_600 {
            if second % 30 == 0 { used += 0.02 }
            let isOver = patience.isOver(used: used)
            #expect(!isOver)
        }
    }

    @Test func `a cleaner that does not run is given up after a minute`() {
        var patience = CleanerTimeLimit(forBytes: 6_000_000, used: 3)
        let looks = (1...60).map { _ in patience.isOver(used: 3) }
        #expect(looks.firstIndex(of: true) == 59)
    }

    @Test func `a cleaner that computes without an end is given up`() {
        var patience = CleanerTimeLimit(forBytes: 6_000_000, used: 1_000)
        let looks = (1...70).map { patience.isOver(used: 1_000 + Double($0)) }
        #expect(looks.firstIndex(of: true) == 66)
    }

    @Test func `a file of an unknown format is uploaded with a note`() {
        guard case .send([], let note?) = ends(nil, .unreadable("not a photo or film of a known format"), false) else {
            Issue.record("sent in silence")
            return
        }
        #expect(
            note.contains("not a known kind of photo") && note.contains("was not removed") && !note.contains("nothing was found"))
    }

    @Test func `a film that cannot be proved to be clean is held`() {
        for verdict in [PhotoCleaner.Verdict.notCleaned("x"), .interrupted] { #expect(isHeld(ends(nil, verdict, false))) }
    }

    @Test func `a film that is proved to be clean is sent without a note`() {
        #expect(ends(nil, .clean(["box loci"]), false) == .send(removed: ["box loci"], note: nil))
    }

    // MARK: Search for locations

    @Test(arguments: [
        "<x photoshop:City='Z'/>", "exif:GPSLatitude", "<Iptc4xmpExt:LocationShown>", "com.apple.quicktime.location.ISO6709",
        "drone-dji:GpsLatitude='1'", "drone-dji:GpsLongtitude='1'", "<photo:longitude>", "geo:lat='52'", "brobExif", "brobxml ",
    ])
    func `names of location fields are found`(_ words: String) {
        #expect(PhotoLocation.isPresent(in: Data([0xFF, 0xD8]) + Data(words.utf8)))
    }

    /// XMP can be encoded in UTF-16.
    @Test(arguments: [String.Encoding.utf16LittleEndian, .utf16BigEndian])
    func `names of location fields in UTF-16 are found in either byte order`(_ encoding: String.Encoding) {
        let text = "<x exif:GPSLatitude='1'/>".data(using: encoding)!
        #expect(PhotoLocation.isPresent(in: Data([0xFF, 0xD8]) + text))
    }

    /// If a photo has more TIFF headers than the search reads, it counts as a photo with a location.
    @Test func `a GPS directory after many entries is found, and too many headers count as a location`() {
        let many = Data(repeatElement([0x49, 0x49, 0x2A, 0x00], count: 10_001).joined())
        #expect(PhotoLocation.isPresent(in: many), "nobody can say")
        func directory(_ tags: [UInt16], value: UInt32) -> Data {
            var bytes = Data([UInt8(tags.count & 0xFF), UInt8(tags.count >> 8)])
            for tag in tags {
                bytes += [UInt8(tag & 0xFF), UInt8(tag >> 8), 4, 0, 1, 0, 0, 0]
                bytes += withUnsafeBytes(of: value.littleEndian) { Data($0) }
            }
            return bytes + Data(count: 4)
        }
        for last: UInt16 in [0x8825, 0x0100] {
            let tags = [UInt16](repeating: 0x0100, count: 20_000) + [last]
            let behind = UInt32(8 + 2 + 12 * tags.count + 4)
            let tiff =
                Data([0x49, 0x49, 0x2A, 0x00, 8, 0, 0, 0]) + directory(tags, value: behind) + directory([1, 2, 3, 4], value: 0)
            #expect(PhotoLocation.isPresent(in: Data([0xFF, 0xD8]) + tiff) == (last == 0x8825))
        }
    }

    /// The film comes after a picture in the same file.
    @Test func `the place of a film after a picture is found only if the film has a valid header`() {
        let place = Data([0xA9]) + Data("xyz\u{0}\u{12}+48.1+011.5/".utf8)
        #expect(
            PhotoLocation.isPresent(
                in: Data([0xFF, 0xD8, 0xFF, 0xD9]) + Data("\u{0}\u{0}\u{0}\u{18}ftypmp42....moov".utf8) + place))
        // Large pictures contain by chance bytes that look like a location.
        #expect(!PhotoLocation.isPresent(in: Data([0xFF, 0xD8, 0xFF, 0xD9]) + place))
        #expect(!PhotoLocation.isPresent(in: Data([0xFF, 0xD8, 0xFF, 0xD9]) + Data("....ftypmp42....moov".utf8) + place))
    }

    /// A photo is searched in windows. The windows (parts of the file that are searched) have to overlap.
    @Test func `a location across the border of two windows is found`() {
        let word = Data("exif:GPSLatitude".utf8)
        var left: [Range<Int>] = []
        for shift in [-word.count, -8, -1, 0, 1] {
            var photo = Data(count: PhotoLocation.window * 2 + 100)
            let place = PhotoLocation.window + shift
            photo.replaceSubrange(place..<place + word.count, with: word)
            #expect(PhotoLocation.isPresent(in: photo))
            photo.replaceSubrange(place..<place + word.count, with: Data(count: word.count))
            left = []
            #expect(!PhotoLocation.isPresent(in: photo) { left.append($0) })
        }
        let window = PhotoLocation.window
        #expect(left == [0..<window, window..<2 * window, 2 * window..<2 * window + 100])
        var film = Data("\u{0}\u{0}\u{0}\u{18}ftypmp42".utf8) + Data(count: window) + Data([0xA9]) + Data("xyz".utf8)
        #expect(PhotoLocation.isPresent(in: film))
        film.replaceSubrange(4..<8, with: Data("free".utf8))
        #expect(!PhotoLocation.isPresent(in: film))
    }
}
