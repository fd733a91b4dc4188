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
    /// - Parameter remove: A closure that overwrites the credentials. The argument of the closure is their name in messages.
    func register(remove: @escaping (String) -> Void) {
        let bytes = view.allBytes()
        guard Self.words.contains(where: { bytes.firstRange(of: Array($0.utf8)) != nil }) else {
            return OpaqueBytes(view, block).clean()
        }
        let block = block
        view.recordBlock(block)
        view.search.recordSignature(block) { remove(block) }
        if Self.locations.contains(where: { bytes.firstRange(of: Array($0.utf8)) != nil }) { view.search.removeSignatures() }
    }
}
