import Foundation
import ServerScripts

/// Makes the files of a Live Photo of Apple.
enum LivePhotoFiles {
    private static func number(_ value: Int, _ bytes: Int) -> Data {
        Data((0..<bytes).map { UInt8(value >> (8 * (bytes - 1 - $0)) & 0xFF) })
    }

    private static func entry(_ tag: Int, _ type: Int, _ count: Int, _ value: Int) -> Data {
        number(tag, 2) + number(type, 2) + number(count, 4) + number(value, 4)
    }

    /// Returns a JPEG picture with Exif data.
    ///
    /// - Parameters:
    ///   - identifier: The content identifier in Apple's maker note.
    ///   - date: A date such as "2026:07:14 12:00:00".
    ///   - offset: An offset from UTC such as "+02:00".
    static func photo(_ name: String, identifier: String? = nil, date: String? = nil, offset: String? = nil) -> Data {
        var (entries, values) = ([(tag: Int, type: Int, bytes: Data)](), Data())
        if let date { entries.append((0x9003, 2, Data(date.utf8) + [0])) }
        if let offset { entries.append((0x9011, 2, Data(offset.utf8) + [0])) }
        if let identifier {
            let text = Data(identifier.utf8) + [0]
            let note = Data("Apple iOS\0\0\u{1}MM".utf8) + number(1, 2) + entry(0x0011, 2, text.count, 32) + number(0, 4) + text
            entries.append((0x927C, 7, note))
        }
        var directory = number(entries.count, 2)
        let start = 26 + 2 + 12 * entries.count + 4
        for (tag, type, bytes) in entries {
            // A value of up to four bytes is in the entry itself.
            guard bytes.count > 4 else {
                directory += number(tag, 2) + number(type, 2) + number(bytes.count, 4) + bytes + Data(count: 4 - bytes.count)
                continue
            }
            directory += entry(tag, type, bytes.count, start + values.count)
            values += bytes
        }
        let header = Data("MM".utf8) + number(42, 2) + number(8, 4) + number(1, 2) + entry(0x8769, 4, 1, 26) + number(0, 4)
        let exif = Data("Exif\0\0".utf8) + header + directory + number(0, 4) + values
        return Data([0xFF, 0xD8, 0xFF, 0xE1]) + number(exif.count + 2, 2) + exif + JPEG.picture(name).dropFirst(2)
    }

    private static func box(_ type: String, _ content: Data) -> Data { number(content.count + 8, 4) + Data(type.utf8) + content }

    /// Returns a QuickTime video without tracks.
    ///
    /// - Parameters:
    ///   - seconds: The length of the video.
    ///   - created: The time at which the video was taken, in seconds since 1970. `nil` if the video has no time.
    static func video(_ name: String, identifier: String? = nil, seconds: Int = 3, created: Int? = nil) -> Data {
        let times = number(created.map { $0 + 2_082_844_800 } ?? 0, 4) + number(0, 4)
        var movie = box("mvhd", number(0, 4) + times + number(600, 4) + number(600 * seconds, 4) + Data(count: 80))
        if let identifier {
            let key = Data("com.apple.quicktime.content.identifier".utf8)
            let value = box("data", number(1, 4) + number(0, 4) + Data(identifier.utf8))
            let item = number(value.count + 8, 4) + number(1, 4) + value
            let handler = box("hdlr", Data(count: 8) + Data("mdta".utf8) + Data(count: 14))
            let keys = box("keys", number(0, 4) + number(1, 4) + number(key.count + 8, 4) + Data("mdta".utf8) + key)
            movie += box("meta", handler + keys + box("ilst", item))
        }
        let media = box("mdat", Data(name.utf8) + Data(repeating: 0x55, count: 2_000))
        return box("ftyp", Data("qt  ".utf8) + number(0, 4) + Data("qt  ".utf8)) + media + box("moov", movie)
    }
}
