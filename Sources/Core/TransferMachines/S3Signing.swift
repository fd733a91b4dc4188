import Foundation

/// The values for access to a bucket: the name of the bucket, its region and the keys.
public struct S3Access: Codable, Equatable, Sendable {
    /// The name of the bucket. `nil` if the address contains the name in its host or as the first part of its path.
    public var bucket: String?
    public var region: String
    public var accessKey: String
    public var secretKey: String
    /// The session token of temporary credentials.
    public var sessionToken: String?

    public init(bucket: String?, region: String, accessKey: String, secretKey: String, sessionToken: String? = nil) {
        self.bucket = bucket
        self.region = region
        self.accessKey = accessKey
        self.secretKey = secretKey
        self.sessionToken = sessionToken
    }

    /// Removes the keys. The bucket and the region are kept.
    public mutating func forgetKeys() { (accessKey, secretKey, sessionToken) = ("", "", nil) }
}

/// The hash functions that S3 requires. Callers pass the functions to this module, because this module contains no cryptography.
package protocol MessageHashing: Sendable {
    func sha256(_ data: Data) -> Data
    func hmacSHA256(_ data: Data, key: Data) -> Data
}

/// The values for Amazon's Signature Version 4 for S3 ("Authenticating Requests: Using the Authorization Header"). A signature is
/// valid for a quarter of an hour, so each attempt has a new signature.
package struct S3Signing: Equatable, Sendable {
    package var access: S3Access
    /// The digest of the body in lower-case hexadecimal. `nil` if the body is not signed.
    package var payloadSHA256: String?
    /// The number of seconds by which the server's clock is ahead of the local clock.
    package var clockSkew: Double = 0

    package init(_ access: S3Access, payloadSHA256: String? = nil, clockSkew: Double = 0) {
        self.access = access
        self.payloadSHA256 = payloadSHA256
        self.clockSkew = clockSkew
    }
}

extension WireRequest {
    /// Returns the request with a signature of all its headers. Returns the unchanged request if ``signing`` is `nil`.
    package func signed(at now: Date, hashing: some MessageHashing) -> WireRequest {
        guard let signing, let url = URLComponents(string: url) else { return self }
        let access = signing.access
        let (time, day) = Self.amazonTime(now.addingTimeInterval(signing.clockSkew))
        var result = self
        result.headers += [
            HeaderField("x-amz-content-sha256", signing.payloadSHA256 ?? "UNSIGNED-PAYLOAD"), HeaderField("x-amz-date", time),
        ]
        if let token = access.sessionToken { result.headers.append(HeaderField("x-amz-security-token", token)) }

        var fields = result.headers.map { ($0.name.lowercased(), $0.value.trimmingCharacters(in: .whitespaces)) }
        fields.append(("host", Self.host(of: url)))
        fields.sort { $0.0 < $1.0 }
        let names = fields.map(\.0).joined(separator: ";")
        let canonical = [
            method, Self.canonicalPath(url), Self.canonicalQuery(url), fields.map { "\($0.0):\($0.1)\n" }.joined(), names,
            signing.payloadSHA256 ?? "UNSIGNED-PAYLOAD",
        ].joined(separator: "\n")
        let scope = "\(day)/\(access.region)/s3/aws4_request"
        let digest = Hex.text(hashing.sha256(Data(canonical.utf8)))
        var key = Data("AWS4\(access.secretKey)".utf8)
        for part in [day, access.region, "s3", "aws4_request"] { key = hashing.hmacSHA256(Data(part.utf8), key: key) }
        let signature = Hex.text(hashing.hmacSHA256(Data("AWS4-HMAC-SHA256\n\(time)\n\(scope)\n\(digest)".utf8), key: key))
        result.headers.append(
            HeaderField(
                "Authorization",
                "AWS4-HMAC-SHA256 Credential=\(access.accessKey)/\(scope),SignedHeaders=\(names),Signature=\(signature)"))
        return result
    }

    /// Returns the host in the form that libcurl sends. The form contains the port only if the port is not the default port of
    /// the scheme.
    private static func host(of url: URLComponents) -> String {
        let host = (url.percentEncodedHost ?? "").lowercased()
        guard let port = url.port, port != (url.scheme?.lowercased() == "https" ? 443 : 80) else { return host }
        return "\(host):\(port)"
    }

    /// Returns the path with a single percent-encoding, even if parts of the address were not encoded.
    private static func canonicalPath(_ url: URLComponents) -> String {
        guard !url.percentEncodedPath.isEmpty else { return "/" }
        return url.percentEncodedPath.split(separator: "/", omittingEmptySubsequences: false).map { segment in
            CollectionAddress.encoded(segment.removingPercentEncoding ?? String(segment), keeping: "")
        }.joined(separator: "/")
    }

    private static func canonicalQuery(_ url: URLComponents) -> String {
        let items = (url.percentEncodedQuery ?? "").split(separator: "&").map { item -> (String, String) in
            let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map { part in
                CollectionAddress.encoded(part.removingPercentEncoding ?? String(part), keeping: "")
            }
            return (parts[0], parts.count > 1 ? parts[1] : "")
        }
        return items.sorted { $0 < $1 }.map { "\($0.0)=\($0.1)" }.joined(separator: "&")
    }

    /// Returns the time in the form `20130524T000000Z`, and the day of this time.
    private static func amazonTime(_ date: Date) -> (time: String, day: String) {
        let (days, time) = CivilDay.parts(Int(date.timeIntervalSince1970.rounded(.down)), of: 86_400)
        func padded(_ number: Int, _ count: Int = 2) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(0, count - text.count)) + text
        }
        let civil = CivilDay(daysSinceEpoch: days)
        let day = padded(civil.year, 4) + padded(civil.month) + padded(civil.day)
        return ("\(day)T\(padded(time / 3_600))\(padded(time / 60 % 60))\(padded(time % 60))Z", day)
    }
}
