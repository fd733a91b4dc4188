/// The state of an incomplete file on the disk. This state is committed with the transfer, and never contains the bytes of the
/// file.
///
/// Order on disk: a new `PartialFile` (0 bytes) is committed **before** the old bytes are truncated or replaced, and `durableBytes`
/// grows only after an fsync. A crash can then never combine the validator of one version with the bytes of another.
package struct PartialFile: Codable, Equatable, Sendable {
    /// The number of bytes that survive a power cut.
    package var durableBytes: Int64
    /// The validator of the version that the stored bytes belong to. `nil` if the download cannot continue after these bytes.
    package var validator: Validator?
    /// The length of the complete file. `nil` if no response reported the length.
    package var totalBytes: Int64?
    /// The URL that sent the response (after redirects). The validator is for this URL.
    package var url: String
    /// The content coding of the stored bytes. `nil` if the bytes are not coded.
    package var coding: String?

    /// `true` if the file is a web page or a part of a web page. `nil` if it was not recorded whether the file is a web page.
    package var isPage: Bool?

    package init(durableBytes: Int64, validator: Validator?, totalBytes: Int64?, url: String, coding: String? = nil) {
        self.coding = coding
        self.durableBytes = durableBytes
        self.validator = validator
        self.totalBytes = totalBytes
        self.url = url
    }

    /// `true` if another attempt can continue after the stored bytes.
    package var isResumable: Bool { validator != nil && durableBytes > 0 }

    /// The offset of the first byte to request, or `nil` to request the complete file. If all bytes are on disk, the last byte is
    /// requested again. The 206 for that byte proves length and validator, and a 416 proves neither.
    var resumeOffset: Int64? {
        guard validator != nil, durableBytes > 0 else { return nil }
        guard let totalBytes else { return durableBytes }
        if durableBytes < totalBytes { return durableBytes }
        return durableBytes == totalBytes && totalBytes > 1 ? totalBytes - 1 : nil
    }

    /// Returns whether the stored validator applies to a response from `other`. Both URLs must be the same, because a validator
    /// does not apply to another resource. Storage services redirect to addresses with a new signature for each request. The
    /// signature does not name the resource, so the signature is not compared.
    func belongs(to other: String) -> Bool {
        url == other || Self.unsigned(url) == Self.unsigned(other)
    }

    private static let signatureKeys: Set<String> = [
        "signature", "expires", "key-pair-id", "policy", "awsaccesskeyid", "googleaccessid",
        // The parameters of Azure's shared access signature.
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
