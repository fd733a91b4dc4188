import CLibgexiv2
import Glibc

/// Metadata in the text of a PNG file: chunks named "Raw profile type exif", for example, with the bytes in hexadecimal.
///
/// ImageMagick writes them. exiv2 ignores some of them that other programs read: the second one of a kind, Exif and XMP without the header
/// or the name that it expects, and Photoshop's.
enum RawProfiles {
    /// The maximum number of bytes of one chunk, and of its decompressed text.
    private static let maximumBytes = 64 << 20
    private static let prefix = "raw profile type "
    /// Kinds that programs read. One that cannot be read here may have a location.
    private static let known: Set<String> = ["exif", "app1", "iptc", "xmp", "8bim"]

    /// Returns the names of the profiles with a location, and of profiles of known kinds that cannot be read.
    static func located(in path: String) -> [String] {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return [] }
        defer { close(file) }
        guard read(8, of: file, at: 0) == [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A] else { return [] }
        var (found, position): ([String], Int) = ([], 8)
        // A chunk is its length, its type, its content and a checksum.
        while let head = read(8, of: file, at: position) {
            let length = head[..<4].reduce(0) { $0 << 8 | Int($1) }
            let type = String(decoding: head[4...], as: UTF8.self)
            if ["tEXt", "zTXt", "iTXt"].contains(type), let name = name(of: file, at: position + 8, length),
                isLocated(read(length, of: file, at: position + 8), type, name)
            {
                found.append(name)
            }
            position += 12 + length
        }
        return found
    }

    /// Returns the name of a chunk if it is a profile with metadata. Profiles of colours have no location.
    private static func name(of file: Int32, at position: Int, _ length: Int) -> String? {
        guard let start = read(min(length, 80), of: file, at: position), let end = start.firstIndex(of: 0) else { return nil }
        let name = String(decoding: start[..<end], as: UTF8.self)
        return name.lowercased().hasPrefix(prefix) && kind(of: name) != "icc" && kind(of: name) != "icm" ? name : nil
    }

    private static func kind(of name: String) -> String { String(name.lowercased().dropFirst(prefix.count)) }

    private static func isLocated(_ chunk: [UInt8]?, _ type: String, _ name: String) -> Bool {
        let isKnown = known.contains(kind(of: name))
        guard let chunk, let text = text(of: chunk, type), let profile = profile(in: text) else { return isKnown }
        if profile.isEmpty { return false }
        guard let picture = picture(with: profile) else { return isKnown }
        do { return try !LocationRemoval.locationTags(in: picture).isEmpty } catch { return isKnown }
    }

    /// Returns `nil` if the file is shorter, or if these are more than ``maximumBytes``.
    private static func read(_ count: Int, of file: Int32, at position: Int) -> [UInt8]? {
        guard count <= maximumBytes else { return nil }
        var (bytes, filled) = ([UInt8](repeating: 0, count: count), 0)
        while filled < count {
            let step = bytes.withUnsafeMutableBytes {
                pread(file, $0.baseAddress! + filled, count - filled, off_t(position + filled))
            }
            guard step > 0 else { return nil }
            filled += step
        }
        return bytes
    }

    /// PNG 1.2, §4.2.3.
    private static func text(of chunk: [UInt8], _ type: String) -> [UInt8]? {
        guard let end = chunk.firstIndex(of: 0) else { return nil }
        var rest = chunk[(end + 1)...]
        switch type {
        case "tEXt": return Array(rest)
        case "zTXt": return decompressed(Array(rest.dropFirst()))
        default:
            let isCompressed = rest.first != 0
            rest = rest.dropFirst(2)
            // A language and the translated name.
            for _ in 0..<2 {
                guard let end = rest.firstIndex(of: 0) else { return nil }
                rest = rest[(end + 1)...]
            }
            return isCompressed ? decompressed(Array(rest)) : Array(rest)
        }
    }

    private static func decompressed(_ bytes: [UInt8]) -> [UInt8]? {
        guard let converter = g_zlib_decompressor_new(G_ZLIB_COMPRESSOR_FORMAT_ZLIB) else { return nil }
        defer { g_object_unref(UnsafeMutableRawPointer(converter)) }
        let room = 1 << 16
        var (output, buffer, position) = ([UInt8](), [UInt8](repeating: 0, count: room), 0)
        while output.count < maximumBytes {
            var (taken, given): (gsize, gsize) = (0, 0)
            let result = bytes.withUnsafeBytes { input in
                g_converter_convert(
                    converter, input.baseAddress.map { $0 + position }, gsize(input.count - position), &buffer, gsize(room),
                    G_CONVERTER_INPUT_AT_END, &taken, &given, nil)
            }
            position += Int(taken)
            output += buffer[..<Int(given)]
            if result == G_CONVERTER_FINISHED { return output }
            guard result == G_CONVERTER_CONVERTED, taken > 0 || given > 0 else { return nil }
        }
        return nil
    }

    /// The lines of the text are a name, the number of bytes, and the bytes.
    private static func profile(in text: [UInt8]) -> [UInt8]? {
        let lines = text.split(separator: 0x0A, maxSplits: 2)
        guard lines.count > 1 else { return nil }
        let digits = lines.dropFirst(2).joined().compactMap(value(ofDigit:))
        return stride(from: 0, to: digits.count - 1, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }

    private static func value(ofDigit letter: UInt8) -> UInt8? {
        switch letter {
        case 0x30...0x39: letter - 0x30
        case 0x41...0x46: letter - 0x41 + 10
        case 0x61...0x66: letter - 0x61 + 10
        default: nil
        }
    }

    /// Returns a file that exiv2 can read: TIFF, XMP, or a JPEG file around a block of Photoshop or IPTC. `nil` if the block is too large for
    /// a JPEG file.
    private static func picture(with profile: [UInt8]) -> [UInt8]? {
        var profile = profile[...]
        if profile.starts(with: Array("Exif\0\0".utf8)) { profile = profile.dropFirst(6) }
        if profile.starts(with: Array("http://ns.adobe.com/xap/1.0/\0".utf8)) {
            profile = profile.drop { $0 != UInt8(ascii: "<") }
        }
        let isIPTC = profile.first == 0x1C
        guard isIPTC || profile.starts(with: Array("8BIM".utf8)) else { return Array(profile) }
        var segment = Array("Photoshop 3.0\0".utf8)
        if isIPTC {
            segment += Array("8BIM".utf8)
            segment += [4, 4, 0, 0]
            segment += bigEndian(profile.count, bytes: 4)
        }
        segment += profile
        if isIPTC, profile.count % 2 == 1 { segment.append(0) }
        let count = segment.count + 2
        guard count <= 0xFFFF else { return nil }
        let head: [UInt8] = [0xFF, 0xD8, 0xFF, 0xED]
        let end: [UInt8] = [0xFF, 0xD9]
        return head + bigEndian(count, bytes: 2) + segment + end
    }

    private static func bigEndian(_ number: Int, bytes: Int) -> [UInt8] {
        (0..<bytes).reversed().map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    }
}
