import Glibc

/// A location that the parsers found. ``LocationProof`` searches for this location in the cleaned file.
package struct FoundPlace: Sendable, Hashable {
    /// The latitude in degrees. South is negative.
    package var latitude: Double?
    /// The longitude in degrees. West is negative.
    package var longitude: Double?
    /// The bytes of a coordinate, as they are in the file. The bytes are stored only if they rarely occur by chance, so that a
    /// search for them is useful.
    package var raw: [UInt8] = []
}

/// The reason why a photo cannot be cleaned.
package enum LocationFailure: Error, Sendable, Equatable, CustomStringConvertible {
    /// The file cannot be read, or the file changed while it was read.
    case unreadable
    /// The search of the file exceeds the limits for a photo.
    case tooExpensive(String)
    /// A block may contain a location, but the block cannot be overwritten without a change of its size.
    case unproven(block: String)
    /// No parser supports the format. The file is unchanged.
    case unknownFormat

    package var description: String {
        switch self {
        case .unreadable: "the file cannot be read, or was changed while it was read"
        case .tooExpensive(let block): "the file has too many parts to search for a location (\(block.printable))"
        case .unproven(let block): "a location in the file cannot be removed (\(block.printable))"
        case .unknownFormat: "the file is not a photo or film of a known format"
        }
    }
}

/// A search for locations in a file, with the reader and the results. All parsers of the file share the search.
///
/// After a failure every read returns `nil`, so that all parsers end soon.
final class LocationSearch {
    /// The maximum numbers of reads, overwrites and nested containers for one photo.
    static let (maximumReads, maximumOverwrites, maximumDepth) = (30_000_000, 100_000, 24)
    /// The name that is used in messages for bytes that do not belong to a block.
    static let unnamed = "data in the file"
    /// The maximum size of a block that is read in one piece.
    static let maximumBlock = 64 << 20

    let source: PhotoBytes
    private(set) var failure: LocationFailure?
    private(set) var overwrites = OverwriteList()
    private(set) var places: [FoundPlace] = []
    private var knownPlaces: Set<FoundPlace> = []
    /// The names of content credentials that were removed.
    private(set) var credentials: [String] = []
    /// Content credentials that are removed if another byte of the file changes.
    private(set) var signatures: [(block: String, remove: () -> Void)] = []
    /// Ranges of the file that contain coded pixels, sound or text that is not metadata.
    private(set) var pixels: [Range<Int>] = []
    /// The blocks of the file, with their names for messages.
    private(set) var blocks: [(range: Range<Int>, name: String)] = []
    /// The kind of each structure that was parsed, with its offset in the file.
    private var parsed: Set<String> = []
    /// The offsets in the file of the headers of TIFF structures.
    private(set) var headers: [Int] = []
    private(set) var depth = 0

    private var window: [UInt8] = []
    private var windowStart = 0
    private var (reads, bytesRead) = (0, 0)
    private static let windowSize = 1 << 16

    /// - Parameter depth: The number of containers around these bytes.
    init(_ source: PhotoBytes, depth: Int = 0) { (self.source, self.depth) = (source, depth) }

    /// Parses a container inside the current container. If there are too many levels of containers, the search fails.
    func nest(_ block: String, _ parse: () -> Void) {
        guard depth < Self.maximumDepth else { return fail(.tooExpensive(block)) }
        depth += 1
        parse()
        depth -= 1
    }

    var isFinished: Bool { failure != nil }

    func fail(_ failure: LocationFailure) { self.failure = self.failure ?? failure }

    /// Records that a parser reads a structure. Returns `false` if the structure was read before.
    func begin(_ kind: String, at offset: Int) -> Bool { parsed.insert("\(kind) \(offset)").inserted }

    func recordHeader(at offset: Int) { if headers.count < 10_000 { headers.append(offset) } }

    func add(_ place: FoundPlace) {
        guard places.count < 2_000, knownPlaces.insert(place).inserted else { return }
        places.append(place)
    }

    func recordPixels(_ range: Range<Int>) {
        if let last = pixels.last, last.upperBound == range.lowerBound {
            pixels[pixels.count - 1] = last.lowerBound..<range.upperBound
        } else if !range.isEmpty {
            pixels.append(range)
        }
    }

    func recordBlock(_ range: Range<Int>, _ name: String) { if blocks.count < 100_000 { blocks.append((range, name)) } }

    func recordSignature(_ block: String, remove: @escaping () -> Void) { signatures.append((block, remove)) }

    func removeSignatures() {
        for signature in signatures {
            signature.remove()
            if !credentials.contains(signature.block) { credentials.append(signature.block) }
        }
        signatures = []
    }

    func overwrite(_ overwrite: Overwrite) {
        guard overwrites.all.count < Self.maximumOverwrites else { return fail(.tooExpensive(overwrite.block)) }
        overwrites.add(overwrite)
    }

    /// Returns the bytes of a range of the file. `nil` if the range extends beyond the end of the file.
    ///
    /// - Parameter current: `true` to include the overwrites that were recorded before this call.
    func bytes(_ range: Range<Int>, current: Bool = true) -> [UInt8]? {
        guard failure == nil, range.lowerBound >= 0, range.upperBound <= source.count, range.count <= Self.maximumBlock else {
            return nil
        }
        reads += 1
        bytesRead += range.count
        // The limits grow with the size of the file, because parsers read each byte a few times. The limits stop the search if a
        // file makes parsers read the same block repeatedly.
        guard reads < max(Self.maximumReads, source.count >> 5), bytesRead < 64 * source.count + (1 << 28) else {
            fail(.tooExpensive("too many parts"))
            return nil
        }
        if range.isEmpty { return [] }
        var result: [UInt8]
        if range.count <= Self.windowSize {
            if range.lowerBound < windowStart || range.upperBound > windowStart + window.count {
                let start = range.lowerBound
                guard let bytes = load(start..<min(start + Self.windowSize, source.count)) else { return nil }
                (window, windowStart) = (bytes, start)
            }
            result = Array(window[range.lowerBound - windowStart..<range.upperBound - windowStart])
        } else {
            guard let bytes = load(range) else { return nil }
            result = bytes
        }
        if current, overwrites.touches(range) {
            result.withUnsafeMutableBytes { overwrites.apply(to: $0, at: range.lowerBound) }
        }
        return result
    }

    private func load(_ range: Range<Int>) -> [UInt8]? {
        let source = source
        var isRead = false
        let bytes = [UInt8](unsafeUninitializedCapacity: range.count) { buffer, count in
            isRead = source.read(at: range.lowerBound, into: UnsafeMutableRawBufferPointer(buffer))
            if !isRead { buffer.initialize(repeating: 0) }
            count = range.count
        }
        guard isRead else {
            fail(.unreadable)
            return nil
        }
        return bytes
    }
}

extension String {
    /// The text with "?" in place of control characters, because damaged names of chunks and boxes contain control characters.
    var printable: String {
        var result = ""
        for scalar in unicodeScalars {
            let isControl = scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value)
            result.unicodeScalars.append(isControl ? "?" : scalar)
        }
        return result
    }
}
