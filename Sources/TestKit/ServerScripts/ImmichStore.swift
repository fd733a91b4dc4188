import Foundation
import Synchronization

/// What Immich's interface promises in its published description, with faults on demand: a stand-in, as Immich itself comes in no
/// package. Mounted by `FaultyServer.mount(_:)`. A photo's SHA-1 is taken from the client's word for it.
///
/// Faults find the question for duplicates as `CHECK`, the form as `POST`.
public final class ImmichStore: MountedStore {
    /// What a client has to send as `x-api-key`.
    public static let key = "immich key"

    private struct State {
        /// By SHA-1, with the number.
        var assets: [String: (id: String, bytes: Data)] = [:]
        var copies = 0
    }

    /// Its paths begin so.
    public let prefix: String
    /// What goes wrong with uploads to it.
    public let faults = UploadFaults()
    private let state = Mutex(State())

    /// A site under a prefix (no slash at its end).
    public init(prefix: String = "/immich") { self.prefix = prefix }

    /// The assets.
    public var files: [Data] { state.withLock { $0.assets.values.map(\.bytes) } }

    /// Photos that came although they were there.
    public var needlessCopies: Int { state.withLock { $0.copies } }

    package func exchange(for request: RecordedRequest) -> any Exchange {
        CollectedExchange(faults, request, as: request.path.hasSuffix("-check") ? "CHECK" : request.method, act: act)
    }

    private func act(_ request: RecordedRequest, _ body: Data) -> ResponseScript {
        guard request.headers["x-api-key"] == Self.key else { return .json(#"{"message":"Invalid API key"}"#, status: 401) }
        switch (request.method, request.path.dropFirst(prefix.count)) {
        case ("POST", "/api/assets/bulk-upload-check"): return check(body)
        case ("POST", "/api/assets"): return take(request, body)
        default: return .json(#"{"message":"Cannot do that"}"#, status: 404)
        }
    }

    private func check(_ body: Data) -> ResponseScript {
        struct Question: Decodable {
            struct Asset: Decodable {
                let id: String
                let checksum: String
            }

            let assets: [Asset]
        }

        guard let question = try? JSONDecoder().decode(Question.self, from: body) else {
            return .json(#"{"message":"assets must be an array"}"#, status: 400)
        }
        let verdicts = state.withLock { state in
            question.assets.map { asset in
                state.assets[asset.checksum].map {
                    #"{"id":"\#(asset.id)","action":"reject","reason":"duplicate","assetId":"\#($0.id)"}"#
                } ?? #"{"id":"\#(asset.id)","action":"accept"}"#
            }
        }
        return .json(#"{"results":[\#(verdicts.joined(separator: ","))]}"#)
    }

    private func take(_ request: RecordedRequest, _ body: Data) -> ResponseScript {
        let needed = ["deviceAssetId", "deviceId", "fileCreatedAt", "fileModifiedAt"]
        guard let form = FormParts(body, type: request.headers["Content-Type"] ?? ""), let file = form.file,
            file.name == "assetData", let checksum = request.headers["x-immich-checksum"]
        else { return .json(#"{"message":"no assetData"}"#, status: 400) }
        for name in needed where form[name] == nil { return .json(#"{"message":"\#(name) should not be empty"}"#, status: 400) }
        return state.withLock { state in
            if let known = state.assets[checksum] {
                state.copies += 1
                return .json(#"{"id":"\#(known.id)","status":"duplicate"}"#)
            }
            let id = "asset-\(state.assets.count + 1)"
            state.assets[checksum] = (id, file.contents)
            return .json(#"{"id":"\#(id)","status":"created"}"#, status: 201)
        }
    }
}
