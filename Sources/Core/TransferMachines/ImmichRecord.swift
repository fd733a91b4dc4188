import Foundation

/// The request that checks whether an Immich server has the photo with an SHA-1 digest (POST `bulk-upload-check`), and the
/// response.
package enum ImmichRecord {
    /// The result of the check for a photo.
    package enum Finding: Equatable, Sendable {
        /// Immich has the photo. `asset` is Immich's identifier of the photo.
        case there(asset: String?)
        /// Immich has the photo in its trash.
        case trashed
        case absent
        /// Immich does not accept the photo, for this reason.
        case refused(String)
    }

    /// The path, relative to the address of the Immich site.
    package static let path = "/api/assets/bulk-upload-check"

    /// Returns the body of the request.
    ///
    /// - Parameter sha1: The digest in hexadecimal.
    package static func question(sha1: String) -> Data {
        struct Question: Encodable {
            struct Asset: Encodable {
                let id: String
                let checksum: String
            }

            let assets: [Asset]
        }
        return (try? JSONEncoder().encode(Question(assets: [.init(id: "photo", checksum: sha1)]))) ?? Data()
    }

    /// Returns the finding in the body of a response with status 200, or `nil` if the body is not a response of Immich.
    package static func finding(_ body: Data) -> Finding? {
        struct Verdicts: Decodable {
            struct Verdict: Decodable {
                let action: String
                let reason: String?
                let assetId: String?
                let isTrashed: Bool?
            }

            let results: [Verdict]
        }
        guard let verdict = try? JSONDecoder().decode(Verdicts.self, from: body).results.first else { return nil }
        guard verdict.action == "reject" else { return .absent }
        guard verdict.reason == "duplicate" else { return .refused(ServerText.line(verdict.reason)) }
        return verdict.isTrashed == true ? .trashed : .there(asset: verdict.assetId)
    }
}
