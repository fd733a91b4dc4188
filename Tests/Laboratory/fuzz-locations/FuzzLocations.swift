import Glibc
import PhotoLocations

/// The container of all inputs. An environment variable chooses the container. Each container has a separate corpus, so that the
/// fuzzer only tests this container.
private enum FuzzedContainer: String, CaseIterable {
    case file, exif, xmp, jpeg, trailer, png, webp, film, heif, jxl, samples, raw

    static let chosen = getenv("FUZZED_CONTAINER").map { FuzzedContainer(rawValue: String(cString: $0))! } ?? .file

    /// Returns the input as a complete file, or as the content of a block of the container.
    func wrap(_ content: [UInt8]) -> [UInt8] {
        func big(_ number: Int, _ size: Int) -> [UInt8] {
            (0..<size).map { UInt8(truncatingIfNeeded: number >> (8 * (size - 1 - $0))) }
        }
        func little(_ number: Int, _ size: Int) -> [UInt8] { big(number, size).reversed() }
        func segment(_ mark: String) -> [UInt8] {
            let content = Array(mark.utf8) + content.prefix(60_000)
            return [0xFF, 0xD8, 0xFF, 0xE1] + big(content.count + 2, 2) + content + [0xFF, 0xD9]
        }
        func box(_ type: String, _ content: [UInt8]) -> [UInt8] { big(content.count + 8, 4) + Array(type.utf8) + content }
        let film = box("ftyp", Array("isom\0\0\u{2}\0isommp42".utf8))
        switch self {
        case .file: return content
        case .exif: return segment("Exif\0\0")
        case .xmp: return segment("http://ns.adobe.com/xap/1.0/\0")
        case .jpeg: return [0xFF, 0xD8] + content + [0xFF, 0xD9]
        case .trailer: return [0xFF, 0xD8, 0xFF, 0xD9] + content
        case .png: return [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A] + big(content.count, 4) + content
        case .webp: return Array("RIFF".utf8) + big(0, 4) + Array("WEBP".utf8) + content
        case .film: return film + box("moov", content)
        case .heif: return film + box("meta", [0, 0, 0, 0] + content)
        case .jxl: return big(12, 4) + Array("JXL \r\n".utf8) + [0x87, 0x0A] + content
        case .samples:
            // The film has a track with one sample. The first four bytes are the format.
            let data = box("mdat", Array(content.dropFirst(4)))
            let entry = box(String(decoding: content.prefix(4).map { $0 & 0x7F }, as: UTF8.self), big(1, 8))
            let sizes = box("stsz", big(content.count, 8) + big(1, 4))
            let runs = box("stsc", big(1, 8) + [0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1])
            let offsets = box("stco", big(1, 8) + big(film.count + 8, 4))
            let table = box("stbl", [box("stsd", big(1, 8) + entry), sizes, runs, offsets].flatMap { $0 })
            let handler = box("hdlr", big(0, 8) + Array("meta".utf8) + big(0, 8))
            return film + data + box("moov", box("trak", box("mdia", handler + box("minf", table))))
        case .raw:
            // The result is a DNG file with an embedded raw file.
            let head: [UInt8] = [0x49, 0x49, 42, 0, 8, 0, 0, 0, 1, 0, 0x8C, 0xC6, 7, 0]
            return head + little(content.count, 4) + [26, 0, 0, 0, 0, 0, 0, 0] + content
        }
    }
}

/// Cleans a file. The parsers must not crash, must keep the size, and must not change bytes outside the reported ranges.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzLocations(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let file = FuzzedContainer.chosen.wrap(Array(UnsafeBufferPointer(start: start, count: count)))
    guard let found = try? PhotoLocations(searching: MemoryBytes(file)), (try? found.prove()) != nil,
        let cleaned = found.cleanedBytes(0..<file.count)
    else { return 0 }
    precondition(cleaned.count == file.count, "the size changed")
    let unreported = zip(file, cleaned).enumerated().contains { index, bytes in
        bytes.0 != bytes.1 && !found.overwrites.contains { $0.range.contains(index) }
    }
    precondition(!unreported, "a byte changed outside of the reported ranges")
    return 0
}
