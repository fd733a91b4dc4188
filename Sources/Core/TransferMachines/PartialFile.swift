/// The state of an incomplete file on the disk, without the bytes of the file. This state is committed with the transfer.
///
/// A new `PartialFile` with 0 bytes is committed **before** the old bytes are truncated or replaced. `durableBytes` grows only
/// after an fsync. So after a crash, the validator of one version is never combined with the bytes of another version.
package struct PartialFile: Codable, Equatable, Sendable {
    /// The number of stored bytes that survive a power failure.
    package var durableBytes: Int64
    /// The validator of the version to which the stored bytes belong. `nil` if the download cannot continue after the stored
    /// bytes.
    package var validator: Validator?
    /// The length of the complete file. `nil` if no response reported the length.
    package var totalBytes: Int64?
    /// The URL that sent the response, after redirects. The validator belongs to this URL.
    package var url: String
    /// The content coding of the stored bytes. `nil` if the bytes are not coded.
    package var coding: String?

    /// `true` if the file is a web page or a part of a web page. `nil` if this was not recorded.
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

    /// The offset of the first byte to request. `nil` if the complete file has to be requested. If all bytes are on the disk, the
    /// last byte is requested again. A 206 for this byte proves the length and the validator. A 416 does not prove the length and
    /// the validator.
    var resumeOffset: Int64? {
        guard validator != nil, durableBytes > 0 else { return nil }
        guard let totalBytes else { return durableBytes }
        if durableBytes < totalBytes { return durableBytes }
        return durableBytes == totalBytes && totalBytes > 1 ? totalBytes - 1 : nil
    }

    /// Returns whether the stored validator applies to a response from the URL `other`. A validator does not apply to another
    /// resource, so both URLs must be equal. Storage services redirect to addresses with a new signature for each request. The
    /// signature does not identify the resource, so the signature is not compared.
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
