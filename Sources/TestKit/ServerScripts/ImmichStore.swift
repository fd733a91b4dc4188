import Foundation
import Synchronization

/// A fake server with Immich's API as described in its published documentation, with faults on demand. Immich itself is not
/// available as a package. `FaultyServer.mount(_:)` mounts the store. The store takes the SHA-1 of a photo from the client's
/// header.
///
/// Before version 3, the form must contain the device. Version 3 refuses unknown fields.
///
/// A fault of ``faults`` applies to the requests with one of these methods: `CHECK` for the check for duplicates, `POST` for the
/// form, `GET` for the version and an original.
public final class ImmichStore: MountedStore {
    /// The API key that a client has to send as `x-api-key`.
    public static let key = "immich key"

    private struct State {
        /// The assets by the SHA-1 of their bytes, each with its identifier.
        var assets: [String: (id: String, bytes: Data)] = [:]
        var copies = 0
        var version: Int?
        var sendsOriginals = true
        var trash: Set<String> = []
        /// The identifiers of the videos of Live Photos, by the identifiers of the photos.
        var videos: [String: String] = [:]
        /// The name of the file that the site refuses.
        var refused: String?
        /// The XMP files, by the identifiers of the photos.
        var sidecars: [String: Data] = [:]
        /// The times at which the photos were taken, by the identifiers of the photos.
        var times: [String: String] = [:]
    }

    /// The path prefix of the site.
    public let prefix: String
    /// The faults of uploads to this site.
    public let faults = UploadFaults()
    private let state = Mutex(State())

    /// Creates a site.
    ///
    /// - Parameters:
    ///   - prefix: The path of the site, without a slash at its end.
    ///   - version: The major version; `nil` for a site of version 2 that does not show its version.
    public init(prefix: String = "/immich", version: Int? = 2) {
        self.prefix = prefix
        state.withLock { $0.version = version }
    }

    /// Updates the site to another version.
    public func update(toVersion version: Int?) { state.withLock { $0.version = version } }

    /// Refuses to send original photos from now on, as if the client's API key did not have this permission.
    public func refuseOriginals() { state.withLock { $0.sendsOriginals = false } }

    /// Refuses files with this name from now on, as Immich refuses unknown types. `nil` to accept all files.
    public func refuse(fileNamed name: String?) { state.withLock { $0.refused = name } }

    /// Moves every photo into the trash.
    public func moveToTrash() { state.withLock { $0.trash = Set($0.assets.keys) } }

    /// Deletes every photo.
    public func deletePhotos() { state.withLock { $0.assets = [:] } }

    /// The stored photos.
    public var files: [Data] { state.withLock { $0.assets.values.map(\.bytes) } }

    /// The photos with a video, each with the bytes of its video.
    public var livePhotos: [(photo: Data, video: Data)] {
        state.withLock { state in
            let bytes = Dictionary(uniqueKeysWithValues: state.assets.values.map { ($0.id, $0.bytes) })
            return state.videos.compactMap { photo, video in bytes[photo].flatMap { photo in bytes[video].map { (photo, $0) } } }
        }
    }

    /// The stored XMP files.
    public var sidecars: [Data] { state.withLock { Array($0.sidecars.values) } }

    /// The times at which the photos were taken, as they were sent.
    public var times: [String] { state.withLock { $0.times.values.sorted() } }

    /// The number of photos that were sent although the site already had them.
    public var needlessCopies: Int { state.withLock { $0.copies } }

    package func exchange(for request: RecordedRequest) -> any Exchange {
        CollectedExchange(faults, request, as: request.path.hasSuffix("-check") ? "CHECK" : request.method, act: act)
    }

    private func act(_ request: RecordedRequest, _ body: Data) -> ResponseScript {
        if (request.method, request.path.dropFirst(prefix.count)) == ("GET", "/api/server/version") { return version() }
        guard request.headers["x-api-key"] == Self.key else { return .json(#"{"message":"Invalid API key"}"#, status: 401) }
        switch (request.method, request.path.dropFirst(prefix.count)) {
        case ("POST", "/api/assets/bulk-upload-check"): return check(body)
        case ("POST", "/api/assets"): return store(request, body)
        case ("DELETE", "/api/assets"): return remove(body)
        case ("PUT", let path) where path.hasPrefix("/api/assets/"):
            return link(String(path.split(separator: "/").last ?? ""), body)
        case ("GET", let path) where path.hasPrefix("/api/assets/") && path.hasSuffix("/original"):
            return original(path.split(separator: "/").dropLast().last.map(String.init) ?? "")
        default: return .json(#"{"message":"Cannot do that"}"#, status: 404)
        }
    }

    /// Removes photos. The test store does this only with `force`, because without it Immich moves photos to the trash.
    private func remove(_ body: Data) -> ResponseScript {
        struct Removal: Decodable {
            let ids: [String]
            let force: Bool
        }

        guard let removal = try? JSONDecoder().decode(Removal.self, from: body), removal.force else {
            return .json(#"{"message":"ids must be an array"}"#, status: 400)
        }
        state.withLock { state in state.assets = state.assets.filter { !removal.ids.contains($0.value.id) } }
        return .status(204)
    }

    /// Links a photo with its video.
    private func link(_ photo: String, _ body: Data) -> ResponseScript {
        struct Update: Decodable {
            let livePhotoVideoId: String
        }

        guard let update = try? JSONDecoder().decode(Update.self, from: body) else {
            return .json(#"{"message":"Validation failed"}"#, status: 400)
        }
        return state.withLock { state in
            let ids = Set(state.assets.values.map(\.id))
            guard ids.isSuperset(of: [photo, update.livePhotoVideoId]) else {
                return .json(#"{"message":"Not found or no asset.update access"}"#, status: 400)
            }
            state.videos[photo] = update.livePhotoVideoId
            return .json(#"{"id":"\#(photo)"}"#)
        }
    }

    private func version() -> ResponseScript {
        guard let version = state.withLock({ $0.version }) else { return .json(#"{"message":"Cannot GET"}"#, status: 404) }
        return .json(#"{"major":\#(version),"minor":0,"patch":2}"#)
    }

    private func original(_ id: String) -> ResponseScript {
        state.withLock { state in
            guard state.sendsOriginals else {
                return .json(#"{"message":"Missing required permission: asset.download"}"#, status: 403)
            }
            guard let asset = state.assets.values.first(where: { $0.id == id }) else {
                return .json(#"{"message":"Not found or no asset.download access"}"#, status: 400)
            }
            return .status(200, headers: ["Content-Type": "image/jpeg"], body: .bytes(asset.bytes))
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
                    #"{"id":"\#(asset.id)","action":"reject","reason":"duplicate","assetId":"\#($0.id)","#
                        + #""isTrashed":\#(state.trash.contains(asset.checksum))}"#
                } ?? #"{"id":"\#(asset.id)","action":"accept"}"#
            }
        }
        return .json(#"{"results":[\#(verdicts.joined(separator: ","))]}"#)
    }

    /// The form fields that version 3 accepts.
    private static let fields: Set<String> = [
        "assetData", "fileCreatedAt", "fileModifiedAt", "duration", "filename", "isFavorite", "visibility", "livePhotoVideoId",
        "metadata",
        "sidecarData",
    ]

    private func store(_ request: RecordedRequest, _ body: Data) -> ResponseScript {
        guard let form = FormParts(body, type: request.headers["Content-Type"] ?? ""), let file = form.file,
            file.name == "assetData", let checksum = request.headers["x-immich-checksum"]
        else { return .json(#"{"message":"no assetData"}"#, status: 400) }
        return state.withLock { state in
            if let refusal = Self.refusal(of: form, version: state.version ?? 2) { return refusal }
            if let refused = state.refused, form.file?.fileName == refused {
                return .json(#"{"message":"Unsupported file type \#(refused)"}"#, status: 400)
            }
            if let known = state.assets[checksum] {
                state.copies += 1
                return .json(#"{"id":"\#(known.id)","status":"duplicate"}"#)
            }
            if let video = form["livePhotoVideoId"] {
                guard state.assets.values.contains(where: { $0.id == video }) else {
                    return .json(#"{"message":"Live photo video not found"}"#, status: 400)
                }
                state.videos["asset-\(state.assets.count + 1)"] = video
            }
            let id = "asset-\(state.assets.count + 1)"
            state.assets[checksum] = (id, file.contents)
            state.sidecars[id] = form.parts.first { $0.name == "sidecarData" && $0.fileName?.hasSuffix(".xmp") == true }?.contents
            state.times[id] = form["fileCreatedAt"]
            return .json(#"{"id":"\#(id)","status":"created"}"#, status: 201)
        }
    }

    /// Returns the refusal of a form. Version 2 sends a list of messages, and version 3 sends a list of errors.
    private static func refusal(of form: FormParts, version: Int) -> ResponseScript? {
        let times = ["fileCreatedAt", "fileModifiedAt"]
        guard version >= 3 else {
            let missing = (["deviceAssetId", "deviceId"] + times).filter { form[$0] == nil }
            guard !missing.isEmpty else { return nil }
            let messages = missing.map { #""\#($0) should not be empty""# }.joined(separator: ",")
            return .json(#"{"message":[\#(messages)],"error":"Bad Request","statusCode":400}"#, status: 400)
        }
        var errors = times.filter { !isTime(form[$0] ?? "") }.map {
            #"{"code":"invalid_format","path":["\#($0)"],"message":"Invalid input: expected ISO 8601 datetime string"}"#
        }
        let unknown = form.parts.map(\.name).filter { !fields.contains($0) }.map { #""\#($0)""# }.joined(separator: ",")
        if !unknown.isEmpty {
            errors.append(#"{"code":"unrecognized_keys","keys":[\#(unknown)],"path":[],"message":"Unrecognized keys"}"#)
        }
        guard !errors.isEmpty else { return nil }
        let list = errors.joined(separator: ",")
        return .json(#"{"message":"Validation failed","errors":[\#(list)],"error":"Bad Request","statusCode":400}"#, status: 400)
    }

    /// Returns whether the text is an ISO 8601 time with an offset.
    private static func isTime(_ text: String) -> Bool {
        text.wholeMatch(of: /\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)/) != nil
    }
}
