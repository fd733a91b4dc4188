/// Content credentials (C2PA) in a JUMBF superbox. The credentials contain a signature of the file's bytes, and may contain a
/// copy of Exif.
struct ContentCredentials {
    private let view: ByteView
    private let block: String

    /// - Parameter view: The bytes of the superbox, or parts of the superbox.
    init(_ view: ByteView, _ block: String) { (self.view, self.block) = (view, block) }

    private static let words = ["c2pa", "jumb"]
    private static let locations = [
        "GPSL", "gpsl", "atitude", "Iptc4xmpExt:Location", "photoshop:City", "photoshop:Country", "photoshop:State",
        "LocationCreated",
        "LocationShown",
    ]

    /// Registers the credentials for removal. The credentials are removed if they contain a location, or if another byte of the
    /// file changes, because the signature is then invalid.
    ///
    /// - Parameter remove: A closure that overwrites the credentials. The argument of the closure is the name of the credentials
    ///   in messages.
    func register(remove: @escaping (String) -> Void) {
        let bytes = view.allBytes()
        guard Self.words.contains(where: { bytes.firstRange(of: Array($0.utf8)) != nil }) else {
            return OpaqueBytes(view, block).clean()
        }
        let block = block
        view.recordBlock(block)
        view.search.recordSignature(block) { remove(block) }
        let hasLocation = Self.locations.contains { bytes.firstRange(of: Array($0.utf8)) != nil }
        if hasLocation || Self.hasLocationKey(bytes) { view.search.removeSignatures() }
    }

    /// Names of coordinates that are too short or too general for a search in any bytes.
    private static let keys: Set<String> = [
        "geo", "lat", "lon", "lng", "latlng", "latlon", "coord", "coords", "coordinate", "coordinates", "geojson", "geohash",
        "geotag",
    ]

    /// Returns whether a map of CBOR (RFC 8949) has a key about a location. The coordinates after the key are binary numbers. A text
    /// of up to 23 bytes begins with the byte 0x60 plus its length.
    private static func hasLocationKey(_ bytes: [UInt8]) -> Bool {
        bytes.indices.contains { start in
            let length = Int(bytes[start]) - 0x60
            let end = start + 1 + length
            guard (3...23).contains(length), end < bytes.count else { return false }
            let key = bytes[(start + 1)..<end]
            guard key.allSatisfy({ (65...90).contains($0) || (97...122).contains($0) || $0 == 95 }) else { return false }
            return keys.contains(String(decoding: key, as: UTF8.self).lowercased()) || LocationNames.isLocation(key)
        }
    }
}
