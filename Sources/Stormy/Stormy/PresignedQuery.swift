import Foundation

/// The query of a presigned address. Some parameters of the query identify the file. The other parameters are the signature, and
/// change each day.
enum PresignedQuery {
    /// The names of parameters that belong to a signature, in lower case. Sources: AWS Signature 2 and 4, Google Cloud Storage V2
    /// and V4, Azure's service SAS (2024-11-04), CloudFront.
    private static let signatures: Set<String> = [
        "awsaccesskeyid", "signature", "expires", "googleaccessid", "policy", "key-pair-id", "sig", "se", "st", "sp", "spr", "sr",
        "sv",
        "sip", "skoid", "sktid", "skt", "ske", "sks", "skv",
    ]
    private static let prefixes = ["x-amz-", "x-goog-"]

    /// Returns a digest of the parameters that may name the file. `nil` if the address has no such parameters.
    static func digest(_ url: URL) -> String? {
        let items = URLComponents(url: url, resolvingAgainstBaseURL: false)?.percentEncodedQueryItems ?? []
        let naming = items.filter { item in
            let name = item.name.lowercased()
            return !signatures.contains(name) && !prefixes.contains { name.hasPrefix($0) }
        }
        guard !naming.isEmpty else { return nil }
        // FNV-1a. The query may be secret, so only its hash is stored. Equal hashes of different queries are improbable.
        let text = naming.map { "\($0.name)=\($0.value ?? "")" }.joined(separator: "&")
        let hash = text.utf8.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
        return String(hash, radix: 16)
    }
}
