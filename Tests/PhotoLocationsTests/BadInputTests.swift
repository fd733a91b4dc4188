import Foundation
import Testing

@testable import PhotoLocations

/// Tests files that are not photos, and files that change while they are cleaned.
@Suite final class BadInputTests {
    private let folder: URL

    init() throws {
        folder = URL(fileURLWithPath: NSTemporaryDirectory()).appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    deinit {
        // FileManager cannot remove names that are not UTF-8.
        if let names = opendir(folder.path) {
            while let entry = readdir(names) {
                withUnsafePointer(to: &entry.pointee.d_name) {
                    _ = $0.withMemoryRebound(to: CChar.self, capacity: 256) { unlinkat(dirfd(names), $0, 0) }
                }
            }
            closedir(names)
        }
        try? FileManager.default.removeItem(at: folder)
    }

    private let photo = Samples.jpeg(Samples.exif(Samples.tiff()))

    private func path(_ name: String) -> String { folder.appendingPathComponent(name).path }

    private func write(_ bytes: [UInt8], to name: String) throws -> String {
        try Data(bytes).write(to: URL(fileURLWithPath: path(name)))
        return path(name)
    }

    private func contains(_ word: String, in path: String) throws -> Bool {
        try Data(contentsOf: URL(fileURLWithPath: path)).range(of: Data(word.utf8)) != nil
    }

    // MARK: Files that are not regular

    @Test func `a named pipe does not block`() {
        #expect(mkfifo(path("pipe"), 0o600) == 0)
        #expect(PhotoCleaning.response(about: path("pipe")) == ["fault", "\(LocationFailure.unreadable)"])
    }

    @Test(arguments: ["/dev/null", "/dev/zero", "/dev/full"]) func `a device is not read`(_ device: String) {
        #expect(PhotoCleaning.response(about: device) == ["fault", "\(LocationFailure.unreadable)"])
    }

    @Test func `a loop of links, a link and a folder are not opened`() throws {
        #expect(symlink(path("b"), path("a")) == 0 && symlink(path("a"), path("b")) == 0)
        #expect(symlink(try write(photo, to: "photo"), path("link")) == 0)
        for name in ["a", "link", ""] {
            let response = PhotoCleaning.response(about: path(name))
            #expect(response[0] == "fault" && response[1].hasPrefix("the copy of the photo cannot be opened"), "\(response)")
        }
        #expect(try contains("Zurich", in: path("photo")))
    }

    @Test func `a file that is missing is a fault of the system`() {
        #expect(PhotoCleaning.response(about: path("missing"))[0] == "fault")
    }

    // MARK: Names

    @Test(arguments: [String(repeating: "n", count: 251) + ".jpg", "two\nlines.jpg", "\u{7F}\t.jpg", "ü\u{301}🌩.jpg", "-", " "])
    func `a photo of any name is cleaned`(_ name: String) throws {
        let path = try write(photo, to: name)
        #expect(PhotoCleaning.response(about: path) == ["clean", "GPS directory of Exif of JPEG"])
        #expect(try !contains("Zurich", in: path))
    }

    @Test(arguments: [[0x66, 0xE9, 0x2E], [0xFF, 0xFE], [0xC0, 0x80], [0xED, 0xA0, 0x80]] as [[UInt8]])
    func `a photo whose name is not UTF-8 is cleaned`(_ name: [UInt8]) throws {
        let raw = (Array((folder.path + "/").utf8) + name + [0]).map { CChar(bitPattern: $0) }
        let original = try write(photo, to: "photo")
        #expect(rename(original, raw) == 0)
        #expect(PhotoCleaning.response(about: raw) == ["clean", "GPS directory of Exif of JPEG"])
    }

    // MARK: Sizes

    @Test func `an empty file has no known format`() throws {
        #expect(PhotoCleaning.response(about: try write([], to: "empty"))[0] == "unreadable")
    }

    /// The header declares a size of 50 GB, but the file is small.
    @Test func `a wrong size in a header does not prevent cleaning`() throws {
        let huge = Samples.big(1, 4) + Array("mdat".utf8) + Samples.big(50 << 30, 8) + [1, 2, 3]
        let film = Samples.film + huge
        #expect(try Cleaned(film).blocks.isEmpty)
        let tiff = Samples.tiff([Samples.Entry(tag: 0x111, type: 4, count: 0xFFFF_FFFF, value: Samples.little(8, 4))])
        #expect(try !Cleaned(tiff).contains("Zurich"))
    }

    /// The film consists mostly of holes, which are read as zeros. The test counts the bytes that are read, because reading 50 GB
    /// would take a minute.
    @Test(arguments: [0, 1]) func `a sparse film of 50 GB costs few reads`(_ kind: Int) throws {
        final class Sparse: PhotoBytes {
            let (head, count): ([UInt8], Int)
            var bytes = 0
            init(_ head: [UInt8], _ count: Int) { (self.head, self.count) = (head, count) }
            func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) -> Bool {
                guard offset + buffer.count <= count else { return false }
                bytes += buffer.count
                buffer.initializeMemory(as: UInt8.self, repeating: 0)
                if offset < head.count { buffer.copyBytes(from: head[offset..<min(head.count, offset + buffer.count)]) }
                return true
            }
        }
        let place = Samples.box("moov", Samples.box("udta", Samples.box("©xyz", [0, 30, 0, 0] + Array(Samples.iso.utf8))))
        let size = Samples.big(kind == 0 ? 0 : 1, 4)
        let head = Samples.film + place + size + Array("mdat".utf8) + (kind == 0 ? [] : Samples.big(50 << 30, 8))
        let file = Sparse(head, 50 << 30)
        let found = try PhotoLocations(searching: file)
        #expect(found.blocks == ["box ©xyz of the film or picture"] && file.bytes < 20 << 20, "\(file.bytes) bytes")
    }

    // MARK: Two formats in one file

    @Test(arguments: [
        "<html><script>var p = {\"latitude\": 47.370094, \"longitude\": 8.549106}</script></html>",
        "<html><body>+47.370094+008.549106/</body></html>",
    ])
    func `HTML behind a JPEG picture is cleaned`(_ text: String) throws {
        let cleaned = try Cleaned(Samples.jpeg() + Array(text.utf8))
        #expect(!cleaned.contains("47.37") && !cleaned.contains("8.549") && cleaned.contains("<html>"))
    }

    /// The archive contains the photo without compression. The list of files at the end of the archive is not changed.
    @Test func `a photo in a ZIP archive behind a JPEG picture is cleaned`() throws {
        let archive = Array("PK\u{3}\u{4}\0\0\0\0\0\0photo.jpg".utf8) + photo + Array("PK\u{1}\u{2}photo.jpg".utf8)
        let cleaned = try Cleaned(Samples.jpeg() + archive)
        #expect(!cleaned.contains("Zurich") && cleaned.contains("PK\u{1}\u{2}photo.jpg"))
    }

    /// A location in deflated data after a picture cannot be changed. If the picture contains the same location, the photo is not
    /// uploaded.
    @Test func `a deflated copy of a location behind a JPEG picture is held`() throws {
        let text = Array("taken at 47.370094 north, 8.549106 east, on a day of hail and storms".utf8)
        let deflated = try #require(Deflate.deflate(text, into: 200))
        let found = try PhotoLocations(searching: MemoryBytes(photo + Array("PK\u{3}\u{4}".utf8) + deflated))
        #expect(throws: LocationFailure.self) { try found.prove() }
    }

    // MARK: Files that change

    /// A file that another program changes after a certain number of reads.
    private final class Changing: PhotoBytes {
        let file: FileBytes
        var count: Int { file.count }
        private var left: Int
        private let change: () -> Void

        init(_ descriptor: Int32, after read: Int, _ change: @escaping () -> Void) throws {
            file = try #require(FileBytes(descriptor: descriptor))
            (left, self.change) = (read, change)
        }

        func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) -> Bool {
            let isRead = file.read(at: offset, into: buffer)
            if left == 0 { change() }
            left -= 1
            return isRead
        }
    }

    /// Cleans a photo that needs several reads. The first reads parse the photo, and the last read proves that the cleaned
    /// photo has no location.
    private func clean(after read: Int, _ change: @escaping (String) -> Void) throws -> (path: String, PhotoCleaning.Report) {
        let path = try write(photo + [UInt8](repeating: 1, count: 200_000), to: "photo")
        let descriptor = open(path, O_RDWR)
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        return (path, try PhotoCleaning.clean(Changing(descriptor, after: read) { change(path) }, descriptor: descriptor))
    }

    @Test(arguments: 0..<4) func `a photo that grows while it is cleaned is not sent`(_ read: Int) {
        #expect(throws: LocationFailure.unreadable) {
            try clean(after: read) {
                let end = open($0, O_WRONLY | O_APPEND)
                _ = Glibc.write(end, "more", 4)
                close(end)
            }
        }
    }

    @Test(arguments: 0..<4) func `a photo that shrinks while it is cleaned is not sent`(_ read: Int) {
        #expect(throws: LocationFailure.unreadable) { try clean(after: read) { truncate($0, 100_000) } }
    }

    /// Another program changes the photo after the cleaner has proved that the photo has no location. At the end, the cleaner
    /// compares the bytes and finds the change.
    @Test func `a photo that is written after it was proved is not sent`() throws {
        let reads = (1..<100).last { read in
            var isReached = false
            _ = try? clean(after: read) { _ in isReached = true }
            return isReached
        }
        let last = try #require(reads)
        #expect(throws: LocationFailure.unreadable) {
            try clean(after: last) {
                let file = open($0, O_WRONLY)
                pwrite(file, "changed", 7, 150_000)
                close(file)
            }
        }
    }

    @Test func `a photo that is replaced while it is cleaned leaves the new file as it is`() throws {
        let other = try write(photo, to: "other")
        let (path, report) = try clean(after: 1) { rename(other, $0) }
        #expect(report.blocks == ["GPS directory of Exif of JPEG"])
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data(photo))
    }
}
