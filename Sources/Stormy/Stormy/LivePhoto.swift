import Foundation
import Glibc
import ProcessSupport

/// Decides whether a photo and a video are a Live Photo of Apple.
///
/// The two files have the same content identifier: the photo in Apple's maker note, and the video in its metadata. If one of the
/// identifiers is missing, the two files must have the same name, the video must be short, and both must have been taken within
/// some seconds.
enum LivePhoto {
    /// The extensions of the names of videos.
    static let videoExtensions = ["mov", "MOV", "mp4", "MP4"]
    /// The extensions of the names of photos that can have a video.
    static let photoExtensions = ["heic", "HEIC", "jpg", "JPG", "jpeg", "JPEG"]

    /// The maximum number of seconds between the times of a photo and its video, if an identifier is missing.
    private static let tolerance = 10.0
    /// The maximum length of the video in seconds, if an identifier is missing. Videos of Live Photos have 3 s. A longer video is
    /// more probably a video of a camera that gives equal names to photos and videos.
    private static let longest = 6.0

    /// The relation of a video with the name of a photo to this photo.
    enum Relation: Equatable {
        case pair
        case unrelated
        /// The photo is a Live Photo, and the video cannot be read now. The text contains the reason.
        case unknown(String)
    }

    /// Returns whether a video with the same name belongs to a photo.
    static func isPair(photo: String, video: String) -> Bool { relation(photo: photo, video: video) == .pair }

    static func relation(photo: String, video: String) -> Relation {
        let own = identifier(ofPhoto: photo)
        let movie: Movie
        do throws(Movie.Unreadable) { movie = try Movie(path: video) } catch {
            return own == nil ? .unrelated : .unknown(error.reason)
        }
        if let own, let other = movie.identifier { return own == other ? .pair : .unrelated }
        guard let seconds = movie.seconds, seconds <= longest else { return .unrelated }
        return haveEqualTimes(photo, video, movie) ? .pair : .unrelated
    }

    /// Compares the times at which the files were taken. If one of these times is not known, compares the times of the files.
    private static func haveEqualTimes(_ photo: String, _ video: String, _ movie: Movie) -> Bool {
        guard let date = PhotoDate.of(URL(exactPath: photo)), date.source != .file, let createdAt = movie.createdAt else {
            guard let first = modified(photo), let second = modified(video) else { return false }
            return abs(first - second) <= tolerance
        }
        let distance = date.time.date.timeIntervalSince(createdAt)
        if date.source == .exif { return abs(distance) <= tolerance }
        // The time zone of the photo is not known. The offsets of all time zones are multiples of 15 minutes.
        let rest = abs(distance.remainder(dividingBy: 900))
        return abs(distance) <= 26 * 3_600 && rest <= tolerance
    }

    private static func modified(_ path: String) -> Double? {
        PathStatus.at(path).information.map { Double($0.st_mtim.tv_sec) }
    }

    /// Returns the content identifier in the maker note of a photo. `nil` if the photo has none.
    ///
    /// The maker note begins with "Apple iOS", and contains the identifier as the text with the tag 0x0011.
    static func identifier(ofPhoto path: String) -> String? {
        guard let data = OriginalBytes.metadata(of: path), let start = data.range(of: appleNote) else { return nil }
        let reader = TIFFReader(data: data, base: start.lowerBound, isLittleEndian: false)
        let identifier = reader.entries(at: 14)?.first { $0.tag == 0x0011 }.map { reader.text($0, limit: 64) }
        return identifier.flatMap { $0.isEmpty ? nil : $0 }
    }

    private static let appleNote = Data("Apple iOS\0\0\u{1}MM".utf8)

    /// Returns the content identifier in the metadata of a QuickTime video. `nil` if the video has none.
    static func identifier(ofVideo path: String) -> String? { (try? Movie(path: path))?.identifier }
}

/// The metadata of a QuickTime or MP4 video.
private struct Movie {
    struct Unreadable: Error {
        let reason: String
    }

    let identifier: String?
    /// The length in seconds. `nil` if the length is not known.
    var seconds: Double?
    var createdAt: Date?

    /// The seconds from 1904, where the times of videos begin, to 1970.
    private static let epoch = 2_082_844_800.0

    init(path: String) throws(Unreadable) {
        let movie = MovieBox(type: "moov", number: 0, content: try Self.metadata(of: path))
        identifier = Self.identifier(in: movie)
        guard let header = movie.inner("mvhd")?.content, let version = header.first, version <= 1 else { return }
        // Version 1 has times of 8 bytes (ISO 14496-12, 8.2.2).
        let size = version == 1 ? 8 : 4
        func number(_ offset: Int, _ count: Int) -> Double {
            header.dropFirst(offset).prefix(count).reduce(0) { $0 * 256 + Double($1) }
        }
        let (created, scale, length) = (number(4, size), number(4 + 2 * size, 4), number(8 + 2 * size, size))
        if scale > 0 { seconds = length / scale }
        if created > Self.epoch { createdAt = Date(timeIntervalSince1970: created - Self.epoch) }
    }

    /// The maximum size in bytes of the metadata, and the maximum number of boxes.
    private static let (largest, mostBoxes) = (16 << 20, 1_000)

    /// Returns the content of the box `moov`. Only the headers of the other boxes are read, because a video can be large.
    private static func metadata(of path: String) throws(Unreadable) -> Data {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw Unreadable(reason: String(cString: strerror(errno))) }
        defer { close(descriptor) }
        var information = stat()
        guard fstat(descriptor, &information) == 0, information.st_mode & S_IFMT == S_IFREG else {
            throw Unreadable(reason: "it is not a file")
        }
        let end = Int(information.st_size)
        var (start, found) = (0, Data())
        for _ in 0..<mostBoxes where start < end {
            guard let header = bytes(descriptor, at: start, count: min(16, end - start)), header.count >= 8 else { break }
            func number(_ range: Range<Int>) -> Int { header[range].reduce(0) { $0 << 8 | Int($1) } }
            var (size, content) = (number(0..<4), 8)
            if size == 0 { size = end - start }
            if size == 1, header.count == 16 { (size, content) = (number(8..<16), 16) }
            guard size >= content, size <= end - start else { break }
            if header[4..<8].elementsEqual("moov".utf8) {
                found = bytes(descriptor, at: start + content, count: min(size - content, largest)) ?? Data()
            }
            start += size
        }
        // A program may still be writing the file.
        guard start == end, !found.isEmpty else { throw Unreadable(reason: "it is not a complete video") }
        return found
    }

    private static func bytes(_ descriptor: Int32, at offset: Int, count: Int) -> Data? {
        var data = Data(count: count)
        let done = data.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, count, off_t(offset)) }
        return done == count ? data : nil
    }

    private static func identifier(in movie: MovieBox) -> String? {
        guard let meta = movie.inner("meta"), let keys = meta.inner("keys"), let list = meta.inner("ilst"),
            let index = keys.metadataKeys.firstIndex(of: "com.apple.quicktime.content.identifier"),
            let value = list.inner.first(where: { $0.number == index + 1 })?.inner("data")?.content.dropFirst(8)
        else { return nil }
        return String(decoding: value.prefix(64), as: UTF8.self)
    }
}

/// A box of a QuickTime or MP4 file (ISO 14496-12, 4.2).
private struct MovieBox {
    let type: String
    /// The type as a number. In a list of metadata, the number is the position of the key.
    let number: Int
    let content: Data

    /// Returns the boxes in some bytes. Boxes after a damaged box are not returned.
    static func all(_ data: Data) -> [MovieBox] {
        var (boxes, start) = ([MovieBox](), data.startIndex)
        func number(_ offset: Int, _ count: Int) -> Int? {
            guard start + offset + count <= data.endIndex else { return nil }
            return data[(start + offset)..<(start + offset + count)].reduce(0) { $0 << 8 | Int($1) }
        }
        while boxes.count < 10_000, let short = number(0, 4), let type = number(4, 4) {
            var (header, size) = (8, short)
            if short == 0 { size = data.endIndex - start }
            if short == 1 {
                // A size with its highest bit set would be negative.
                guard let long = number(8, 8), long > 0 else { break }
                (header, size) = (16, long)
            }
            guard size >= header, size <= data.endIndex - start else { break }
            let name = String(decoding: data[(start + 4)..<(start + 8)], as: UTF8.self)
            boxes.append(MovieBox(type: name, number: type, content: data[(start + header)..<(start + size)]))
            start += size
        }
        return boxes
    }

    var inner: [MovieBox] {
        // In MP4 files, the box `meta` begins with a version, which is 0 (ISO 14496-12, 8.11.1). In QuickTime files, it does not.
        let hasVersion = type == "meta" && content.starts(with: [0, 0, 0, 0])
        return Self.all(hasVersion ? content.dropFirst(4) : content)
    }

    func inner(_ type: String) -> MovieBox? {
        inner.first { $0.type == type }
    }

    /// The names in a `keys` box (QuickTime File Format, "Metadata Item Keys Atom").
    var metadataKeys: [String] {
        Self.all(content.dropFirst(8)).map { String(decoding: $0.content, as: UTF8.self) }
    }
}
