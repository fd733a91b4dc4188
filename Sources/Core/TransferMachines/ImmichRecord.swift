import Foundation

/// The question whether an Immich has a photo by its SHA-1 (POST `bulk-upload-check`), and the response.
package enum ImmichRecord {
    /// What Immich has.
    package enum Finding: Equatable, Sendable {
        /// The photo; `asset` is its number there.
        case there(asset: String?)
        /// The photo, in the trash.
        case trashed
        case absent
        /// Immich does not take such a photo, and why.
        case refused(String)
    }

    /// The path below the address of the site.
    package static let path = "/api/assets/bulk-upload-check"

    /// The body of the question.
    ///
    /// - Parameter sha1: hex.
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

    /// Returns what the body of a response with status 200 reports; `nil` if it is not a response of Immich.
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
