/// The ranges of a photo or film that hold its location, and the bytes that replace them. Sizes and offsets stay.
///
/// Pure: reads through `PhotoBytes` and writes nothing.
package struct PhotoLocations {
    /// In the order of the file, without overlaps.
    package let overwrites: [Overwrite]
    /// The places that were found, for the proof.
    package let places: [FoundPlace]
    /// Content credentials that are removed, because they sign the old bytes.
    package let credentials: [String]
    /// True if a parser knows the format. Bytes of other formats are searched like a trailer.
    package let isKnownFormat: Bool
    private let search: LocationSearch

    /// Searches all bytes.
    ///
    /// - Throws: If the file cannot be read, costs too much, or has a location in a block that cannot be changed in place.
    package init(searching source: PhotoBytes) throws(LocationFailure) {
        let search = LocationSearch(source)
        isKnownFormat = search.cleanFile(nil)
        if let failure = search.failure { throw failure }
        (overwrites, places, credentials, self.search) = (
            search.overwrites.all, search.places, search.credentials.map(\.printable), search
        )
    }

    /// The names of the blocks with a location, without repetition.
    package var blocks: [String] {
        var known: Set<String> = []
        return overwrites.filter { !search.credentials.contains($0.block) }.map { name(of: $0).printable }
            .filter { known.insert($0).inserted }
    }

    /// Bytes that no parser read have the name of the block around them.
    private func name(of overwrite: Overwrite) -> String {
        guard overwrite.block == LocationSearch.unnamed else { return overwrite.block }
        return name(at: overwrite.range.lowerBound) ?? LocationSearch.unnamed
    }

    /// The bytes of the result.
    package func cleanedBytes(_ range: Range<Int>) -> [UInt8]? { search.bytes(range) }

    /// The name of the block that holds an offset, for messages.
    package func block(at offset: Int) -> String {
        name(at: offset) ?? "the file at byte \(offset)"
    }

    /// Names that end with the one of no block are from the second search, which reads all bytes.
    private func name(at offset: Int) -> String? {
        search.blocks.last { $0.range.contains(offset) && !$0.name.hasSuffix(LocationSearch.unnamed) }?.name
    }

    /// Looks for the places in the result, with code that shares nothing with the parsers.
    ///
    /// - Parameter observe: Receives the bytes of the result in order.
    /// - Throws: If one is found, or the file cannot be read.
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
