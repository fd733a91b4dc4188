/// The ranges of a photo or film that contain its location, and the bytes that replace them. The sizes and the offsets in the
/// file do not change.
///
/// This type reads the file through `PhotoBytes` and does not write.
package struct PhotoLocations {
    /// The overwrites in the order of the file, without overlaps.
    package let overwrites: [Overwrite]
    /// The locations that were found. ``LocationProof`` searches for these locations in the cleaned file.
    package let places: [FoundPlace]
    /// The content credentials that are removed, because they contain a signature of the old bytes.
    package let credentials: [String]
    /// `true` if a parser supports the format. If the format is unsupported, the file is searched like an unknown block.
    package let isKnownFormat: Bool
    private let search: LocationSearch

    /// Searches all bytes of a file for locations.
    ///
    /// - Throws: An error if the file cannot be read or exceeds the limits. An error is also thrown if a block with a location
    ///   cannot be changed in place.
    package init(searching source: PhotoBytes) throws(LocationFailure) {
        let search = LocationSearch(source)
        isKnownFormat = search.cleanFile(nil)
        if let failure = search.failure { throw failure }
        (overwrites, places, credentials, self.search) = (
            search.overwrites.all, search.places, search.credentials.map(\.printable), search
        )
    }

    /// The names of the blocks with a location, without duplicates.
    package var blocks: [String] {
        var known: Set<String> = []
        return overwrites.filter { !search.credentials.contains($0.block) }.map { name(of: $0).printable }
            .filter { known.insert($0).inserted }
    }

    /// Returns the name of an overwrite's block. If no parser has read the bytes, the name of the block around the bytes is
    /// returned.
    private func name(of overwrite: Overwrite) -> String {
        guard overwrite.block == LocationSearch.unnamed else { return overwrite.block }
        return name(at: overwrite.range.lowerBound) ?? LocationSearch.unnamed
    }

    /// Returns a range of bytes of the cleaned file.
    package func cleanedBytes(_ range: Range<Int>) -> [UInt8]? { search.bytes(range) }

    /// Returns the name of the block that contains an offset, for messages.
    package func block(at offset: Int) -> String {
        name(at: offset) ?? "the file at byte \(offset)"
    }

    /// Returns the name of the block that contains an offset. Names that end with ``LocationSearch/unnamed`` are from the second
    /// search and are ignored.
    private func name(at offset: Int) -> String? {
        search.blocks.last { $0.range.contains(offset) && !$0.name.hasSuffix(LocationSearch.unnamed) }?.name
    }

    /// Searches for the found locations in the cleaned file, with code that the parsers do not use.
    ///
    /// - Parameter observe: A closure that receives the bytes of the cleaned file in their order.
    /// - Throws: An error if a location is found, or if the file cannot be read.
    package func prove(observe: ([UInt8]) -> Void = { _ in }) throws(LocationFailure) {
        var proof = LocationProof(places)
        let step = 1 << 20
        for start in stride(from: 0, to: search.source.count, by: step) {
            let end = min(start + step, search.source.count)
            guard let bytes = search.bytes(start..<min(end + LocationProof.overlap, search.source.count)) else {
                throw .unreadable
            }
            observe(Array(bytes[..<(end - start)]))
            if let found = proof.firstPlace(in: bytes, upTo: end - start) { throw .unproven(block: block(at: start + found)) }
        }
    }
}
