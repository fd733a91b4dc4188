import PhotoLocations

/// The input as a file, and as the content of a block of each container. The parsers must not trap, and the result must have no location for
/// a second run.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzLocations(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let input = Array(UnsafeBufferPointer(start: start, count: count))
    guard let first = input.first else { return 0 }
    let file = container(Int(first) % 8, Array(input.dropFirst()))
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

private func container(_ kind: Int, _ content: [UInt8]) -> [UInt8] {
    func big(_ number: Int, _ size: Int) -> [UInt8] {
        (0..<size).map { UInt8(truncatingIfNeeded: number >> (8 * (size - 1 - $0))) }
    }
    func segment(_ mark: String) -> [UInt8] {
        let content = Array(mark.utf8) + content.prefix(60_000)
        return [0xFF, 0xD8, 0xFF, 0xE1] + big(content.count + 2, 2) + content + [0xFF, 0xD9]
    }
    func box(_ type: String, _ content: [UInt8]) -> [UInt8] { big(content.count + 8, 4) + Array(type.utf8) + content }
    let film = box("ftyp", Array("isom\0\0\u{2}\0isommp42".utf8))
    switch kind {
    case 0: return content
    case 1: return segment("Exif\0\0")
    case 2: return segment("http://ns.adobe.com/xap/1.0/\0")
    case 3: return [0xFF, 0xD8, 0xFF, 0xD9] + content
    case 4: return [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A] + big(content.count, 4) + Array("tEXt".utf8) + content
    case 5: return Array("RIFF".utf8) + big(0, 4) + Array("WEBP".utf8) + content
    case 6: return film + box("moov", content)
    default: return film + box("meta", [0, 0, 0, 0] + content)
    }
}
