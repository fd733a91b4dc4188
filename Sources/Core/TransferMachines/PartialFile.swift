/// What is known of a file of which a part is on disk. Committed with the transfer; small, never the bytes.
///
/// Order on disk: a new `PartialFile` (0 bytes) is committed **before** the old bytes are truncated or replaced, and
/// `durableBytes` grows only after an fsync. Then no crash can pair one version's validator with another's bytes.
package struct PartialFile: Codable, Equatable, Sendable {
    /// Bytes that survive a power cut.
    package var durableBytes: Int64
    /// Of the version those bytes belong to; `nil`: they cannot be added to.
    package var validator: Validator?
    /// The whole length, once an answer said it.
    package var totalBytes: Int64?
    /// The URL that answered (after redirects): the one the validator belongs to.
    package var url: String
    /// The content coding of those bytes; `nil`: none.
    package var coding: String?

    /// It is a web page, or part of one; `nil`: nobody noted that.
    package var isPage: Bool?

    package init(durableBytes: Int64, validator: Validator?, totalBytes: Int64?, url: String, coding: String? = nil) {
        self.coding = coding
        self.durableBytes = durableBytes
        self.validator = validator
        self.totalBytes = totalBytes
        self.url = url
    }

    /// Another attempt can go on from here.
    package var isResumable: Bool { validator != nil && durableBytes > 0 }

    /// The offset to ask from; `nil`: from the start. When everything is here, the last byte is asked for again:
    /// its 206 proves length and validator, where a 416 proves neither.
    var resumeOffset: Int64? {
        guard validator != nil, durableBytes > 0 else { return nil }
        guard let totalBytes else { return durableBytes }
        if durableBytes < totalBytes { return durableBytes }
        return durableBytes == totalBytes && totalBytes > 1 ? totalBytes - 1 : nil
    }

    /// Whether an answer of `other` can carry our validator: the same URL. A validator says nothing about another
    /// resource. Storage services redirect to addresses signed anew for each request; their signature does not
    /// name the resource, so it is not compared.
    func belongs(to other: String) -> Bool {
        url == other || Self.unsigned(url) == Self.unsigned(other)
    }

    private static let signatureKeys: Set<String> = [
        "signature", "expires", "key-pair-id", "policy", "awsaccesskeyid", "googleaccessid",
        // Azure's shared access signature
        "sig", "se", "sp", "sv", "sr", "st", "spr", "skoid", "sktid", "skt", "ske", "sks", "skv",
    ]

    private static func unsigned(_ url: String) -> String {
        let pieces = url.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        guard pieces.count == 2 else { return url }
        let kept = pieces[1].split(separator: "&").filter { pair in
            let key = pair.prefix(while: { $0 != "=" }).lowercased()
            return !(key.hasPrefix("x-amz-") || key.hasPrefix("x-goog-") || signatureKeys.contains(key))
        }
        return pieces[0] + "?" + kept.joined(separator: "&")
    }
}
