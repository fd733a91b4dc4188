import Foundation
import Glibc

/// Decides whether a photo and a video are a Live Photo of Apple.
///
/// The two files have the same content identifier: the photo in Apple's maker note, and the video in its metadata. If one of the
/// identifiers is missing, the two files must have the same name, and must have been made within some seconds.
enum LivePhoto {
    /// The extensions of the names of videos.
    static let videoExtensions = ["mov", "MOV", "mp4", "MP4"]
    /// The extensions of the names of photos that can have a video.
    static let photoExtensions = ["heic", "HEIC", "jpg", "JPG", "jpeg", "JPEG"]

    /// The maximum number of seconds between the times of a photo and its video, if an identifier is missing.
    private static let tolerance = 10.0

    /// Returns whether a video with the same name belongs to a photo.
    static func isPair(photo: String, video: String) -> Bool {
        if let photo = identifier(ofPhoto: photo), let video = identifier(ofVideo: video) { return photo == video }
        guard isMovie(video), let photo = modified(photo), let video = modified(video) else { return false }
        return abs(photo - video) <= tolerance
    }

    private static func modified(_ path: String) -> Double? {
        var information = stat()
        guard stat(path, &information) == 0, information.st_mode & S_IFMT == S_IFREG else { return nil }
        return Double(information.st_mtim.tv_sec)
    }

    private static func isMovie(_ path: String) -> Bool {
        boxes(at: path).contains { $0.type == "ftyp" }
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
    /// The maximum size in bytes of a video that is read. Videos of Live Photos have a few megabytes.
    private static let largestVideo = 64 << 20

    /// Returns the content identifier in the metadata of a QuickTime video. `nil` if the video has none.
    static func identifier(ofVideo path: String) -> String? {
        guard let movie = boxes(at: path).first(where: { $0.type == "moov" }), let meta = movie.inner("meta"),
            let keys = meta.inner("keys"), let list = meta.inner("ilst"),
            let index = keys.metadataKeys.firstIndex(of: "com.apple.quicktime.content.identifier"),
            let value = list.inner.first(where: { $0.number == index + 1 })?.inner("data")?.content.dropFirst(8)
        else { return nil }
        return String(decoding: value.prefix(64), as: UTF8.self)
    }

    private static func boxes(at path: String) -> [MovieBox] {
        OriginalBytes.read(path, limit: largestVideo).map(MovieBox.all) ?? []
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
