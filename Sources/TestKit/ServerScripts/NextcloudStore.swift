import Foundation
import Synchronization

/// A fake server with Nextcloud's chunked uploads (version 2) as described in its developer manual, with faults on demand. Nextcloud itself
/// is not available as a package. `FaultyServer.mount(_:)` mounts the store. Files are under `…/remote.php/dav/files/me/`.
public final class NextcloudStore: MountedStore {
    private struct State {
        var folders: Set<String> = ["files/me", "uploads/me"]
        var files: [String: Data] = [:]
        var taken = 0
        var forbidden = ""
        var language = "en"
        var refusesWindowsNames = false
    }

    /// The path prefix of the site.
    public let prefix: String
    /// The faults of uploads to this site.
    public let faults = UploadFaults()
    private let state = Mutex(State())

    /// Creates a site. The paths of its URLs begin with `prefix`, which does not end with a slash.
    public init(prefix: String = "/cloud") { self.prefix = prefix }

    /// The files, without chunks that are not combined yet.
    public var files: [Data] { state.withLock { $0.files.filter { $0.key.hasPrefix("files/") }.map(\.value) } }

    /// The paths of the files, relative to the user's folder and without percent-encoding.
    public var names: [String] {
        state.withLock {
            $0.files.keys.filter { $0.hasPrefix("files/me/") }.map { String($0.dropFirst("files/me/".count)) }.sorted()
        }
    }

    /// Refuses names with one of these characters, like a Nextcloud with the rules of Windows for names.
    ///
    /// - Parameters:
    ///   - characters: The forbidden characters.
    ///   - language: The language of the reason: `en`, `de` or `fr`.
    public func forbid(_ characters: String, language: String = "en") {
        state.withLock { ($0.forbidden, $0.language) = (characters, language) }
    }

    /// Refuses reserved names, names with a dot or a space at the end, and incomplete files, like a Nextcloud with the rules of
    /// Windows for names.
    public func forbidWindowsNames() { state.withLock { $0.refusesWindowsNames = true } }

    /// The number of body bytes in all complete requests.
    public var bytesTaken: Int { state.withLock { $0.taken } }

    /// The number of chunk folders that were neither combined nor removed.
    public var openUploads: Int { state.withLock { $0.folders.filter { $0.hasPrefix("uploads/me/") }.count } }

    package func exchange(for request: RecordedRequest) -> any Exchange { CollectedExchange(faults, request, act: act) }

    private func act(_ request: RecordedRequest, _ body: Data) -> ResponseScript {
        guard let place = place(of: request.path) else { return .status(404) }
        let destination = request.headers["Destination"].flatMap { URLComponents(string: $0)?.percentEncodedPath }
            .flatMap { self.place(of: $0) }
        return state.withLock { state in
            state.taken += body.count
            let parent = Self.parent(of: place)
            let target = request.method == "HEAD" ? place : destination ?? ""
            // As in Nextcloud, a response to HEAD contains no reason, and the names of chunks are not checked.
            if ["HEAD", "MOVE"].contains(request.method), let refusal = Self.refusal(of: target, state) { return refusal }
            switch request.method {
            case "HEAD":
                guard let file = state.files[place] else { return .status(404) }
                return .head(["Content-Length": "\(file.count)"])
            case "GET":
                guard let file = state.files[place] else { return .status(404) }
                return .status(200, body: .bytes(file))
            case "MKCOL":
                if state.folders.contains(place) { return .status(405) }
                guard state.folders.contains(parent) else { return .status(409) }
                if place.hasPrefix("uploads/") {
                    // A request without `Destination` belongs to the first version of chunked uploads. In that version, chunks
                    // have different names.
                    guard let destination, state.folders.contains(Self.parent(of: destination)) else { return .status(409) }
                }
                state.folders.insert(place)
                return .status(201)
            case "PROPFIND":
                guard state.folders.contains(place) else { return .status(404) }
                return .xml(Self.listing(of: place, prefix, state), status: 207)
            case "PUT":
                guard state.folders.contains(parent) else { return .status(404) }
                guard let number = Int(place.split(separator: "/").last ?? ""), (1...10_000).contains(number), destination != nil
                else { return .status(400) }
                state.files[place] = body
                return .status(201)
            case "MOVE":
                guard place.hasSuffix("/.file"), state.folders.contains(parent), let destination else { return .status(404) }
                return Self.assemble(parent, as: destination, request, &state)
            case "DELETE":
                if state.files.removeValue(forKey: place) != nil { return .status(204) }
                guard state.folders.remove(place) != nil else { return .status(404) }
                state.files = state.files.filter { !$0.key.hasPrefix(place + "/") }
                return .status(204)
            default: return .status(405)
            }
        }
    }

    /// Returns the part of a path below the prefix, for example `files/me/photos/noon.jpg` or `uploads/me/TOKEN/00001`.
    private func place(of path: String) -> String? {
        let root = prefix + "/remote.php/dav/"
        guard path.hasPrefix(root), let decoded = path.dropFirst(root.count).removingPercentEncoding else { return nil }
        return decoded.split(separator: "/").joined(separator: "/")
    }

    private static func parent(of place: String) -> String { place.split(separator: "/").dropLast().joined(separator: "/") }

    private static func listing(of folder: String, _ prefix: String, _ state: State) -> String {
        let chunks = state.files.filter { $0.key.hasPrefix(folder + "/") }.map { place, bytes in
            "<d:response><d:href>\(prefix)/remote.php/dav/\(place)</d:href><d:propstat><d:prop><d:getcontentlength>\(bytes.count)"
                + "</d:getcontentlength></d:prop><d:status>HTTP/1.1 200 OK</d:status></d:propstat></d:response>"
        }
        return "<d:multistatus xmlns:d=\"DAV:\"><d:response><d:href>\(prefix)/remote.php/dav/\(folder)/</d:href></d:response>"
            + chunks.joined() + "</d:multistatus>"
    }

    private static func refusal(of place: String, _ state: State) -> ResponseScript? {
        let name = place.split(separator: "/").last.map(String.init) ?? ""
        if state.refusesWindowsNames, let words = windowsRefusal(of: name) { return refusal(words) }
        guard let character = state.forbidden.first(where: name.contains) else { return nil }
        let quoted = character == "\"" ? "&quot;" : character == "<" ? "&lt;" : String(character)
        let words =
            switch state.language {
            case "de": "„\(quoted)“ ist in Datei- oder Ordnernamen nicht erlaubt."
            case "fr": "«\u{A0}\(quoted)\u{A0}» n'est pas autorisé dans un nom de fichier ou de dossier."
            default: "\"\(quoted)\" is not allowed inside a file or folder name."
            }
        return refusal(words)
    }

    private static func windowsRefusal(of name: String) -> String? {
        let base = name.prefix { $0 != "." }.lowercased()
        if ["con", "nul", "com1"].contains(base) { return "\"\(base)\" is a forbidden file or folder name." }
        if name.hasSuffix(".part") { return "\".part\" is a forbidden file type." }
        return name.hasSuffix(".") || name.hasSuffix(" ") ? "Filenames must not end with \"\(name.suffix(1))\"" : nil
    }

    private static func refusal(_ words: String) -> ResponseScript {
        .xml(
            "<d:error xmlns:d=\"DAV:\" xmlns:s=\"http://sabredav.org/ns\"><s:exception>OCA\\DAV\\Connector\\Sabre\\Exception\\InvalidPath"
                + "</s:exception><s:message>\(words)</s:message></d:error>", status: 400)
    }

    private static func assemble(
        _ folder: String, as destination: String, _ request: RecordedRequest, _ state: inout State
    ) -> ResponseScript {
        guard state.folders.contains(parent(of: destination)) else { return .status(409) }
        if request.headers["Overwrite"] == "F", state.files[destination] != nil { return .status(412) }
        let chunks = state.files.filter { $0.key.hasPrefix(folder + "/") }.sorted { $0.key < $1.key }
        let whole = chunks.reduce(Data()) { $0 + $1.value }
        if let length = request.headers["OC-Total-Length"].flatMap(Int.init), length != whole.count { return .status(400) }
        state.files[destination] = whole
        state.folders.remove(folder)
        for chunk in chunks { state.files[chunk.key] = nil }
        return .status(201)
    }
}
