import Foundation

/// The URL of a folder on a server, split into its parts. A file name can then be inserted into the path without a change of
/// other parts.
struct CollectionAddress: Equatable, Sendable {
    /// The origin `https://host:port`, without user and password. A user and a password must not appear in the header
    /// `Destination`, and must not be stored.
    let origin: String
    /// The origin to which requests are sent, with the user and password that the caller set.
    private let requestOrigin: String
    /// The percent-encoded segments of the path.
    private(set) var segments: [String]

    /// Creates an address. Returns `nil` if the URL is not an http or https address. The query and the fragment are removed,
    /// because they have no meaning for a folder.
    init?(_ url: String) {
        guard let colon = url.range(of: "://") else { return nil }
        let scheme = url[..<colon.lowerBound].lowercased()
        guard scheme == "http" || scheme == "https" else { return nil }
        let rest = url[colon.upperBound...]
        let authority = rest.prefix(while: { $0 != "/" && $0 != "?" && $0 != "#" })
        let host = authority.lastIndex(of: "@").map { authority[authority.index(after: $0)...] } ?? authority
        guard !host.isEmpty else { return nil }
        origin = "\(scheme)://\(host)"
        requestOrigin = "\(scheme)://\(authority)"
        var segments: [String] = []
        let path = rest[authority.endIndex...].prefix(while: { $0 != "?" && $0 != "#" })
        for segment in path.split(separator: "/") {
            switch segment {
            case ".": continue
            case "..": _ = segments.popLast()
            default: segments.append(Self.encoded(String(segment), keeping: "%!$&'()*+,;=:@"))
            }
        }
        self.segments = segments
    }

    /// Returns the address with `folder` inserted before the first path segment.
    func inside(_ folder: String) -> CollectionAddress {
        var result = self
        result.segments.insert(Self.encoded(folder, keeping: ""), at: 0)
        return result
    }

    /// Returns the address of the folder that consists of the first `levels` segments. The address ends with a slash.
    func folder(levels: Int) -> String {
        requestOrigin + "/" + segments.prefix(levels).map { $0 + "/" }.joined()
    }

    /// Returns the address of a file in this folder, for a request.
    func file(_ name: String) -> String { folder(levels: segments.count) + Self.encoded(name, keeping: "") }

    /// Returns the address of a file in this folder for display, without user and password.
    func publicFile(_ name: String) -> String {
        origin + "/" + segments.map { $0 + "/" }.joined() + Self.encoded(name, keeping: "")
    }

    /// Returns an address for comparisons. Each name in this address has the form of ``RemoteName/folded(_:)``.
    static func folded(_ address: String) -> String { RemoteName.folded(address.removingPercentEncoding ?? address) }

    static func encoded(_ text: String, keeping kept: String) -> String {
        let plain = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~".utf8).union(kept.utf8)
        let digits = Array("0123456789ABCDEF")
        var result = ""
        for byte in text.utf8 {
            if plain.contains(byte) {
                result.append(Character(UnicodeScalar(byte)))
            } else {
                result += "%\(digits[Int(byte >> 4)])\(digits[Int(byte & 15)])"
            }
        }
        return result
    }
}

/// Addresses without secrets, for display.
package enum PublicAddress {
    /// Returns the address without user and password. The query may contain a secret, so the query is removed unless `keepsQuery`
    /// is `true`. If the text is not a valid address, the result is empty, because the position of secrets in such a text is
    /// unknown.
    package static func of(_ url: String, keepsQuery: Bool = false) -> String {
        guard var parts = URLComponents(string: url) else { return "" }
        (parts.user, parts.password, parts.fragment) = (nil, nil, nil)
        if !keepsQuery { parts.query = nil }
        return parts.string ?? ""
    }
}

/// The search for a free file name with HEAD requests. The search also checks whether the responses to HEAD are reliable.
///
/// Some servers respond to every HEAD with 200. If many consecutive names are taken, the upload sends HEAD for a name that no
/// file has. If the server reports this name as taken, the upload ignores the server's responses to HEAD. The upload then
/// continues as for a server that does not support HEAD: the file name contains a part of the file's digest.
struct NameSearch: Sendable {
    private static let namesBeforeDoubt = 20

    /// The number of refused names after which the responses to HEAD are doubted. A few refusals are normal, because another
    /// computer may take a name between HEAD and the next request.
    private static let refusalsBeforeDoubt = 4

    private var taken = 0
    /// The number of names that the server refused since a response to HEAD last reported a taken name.
    private var refusals = 0
    /// The refused name for which HEAD is sent again. If HEAD then reports the name as free, the upload concludes that the server
    /// refuses every name.
    private(set) var refused: Int?
    private(set) var distrustsHead: Bool
    /// `true` if the server responded with success to HEAD for a name that no file has. A GET for this name then shows whether
    /// the server responds with success to every request.
    private var asksByGet = false
    private var hasWaited = false

    init(resuming memory: UploadMemory?) { distrustsHead = memory?.distrustsHead ?? false }

    /// Counts a taken name.
    ///
    /// - Returns: whether the next request is sent for a name that no file has.
    mutating func recordTaken() -> Bool {
        taken += 1
        (refusals, refused) = (0, nil)
        return taken % Self.namesBeforeDoubt == 0
    }

    /// Counts a name that HEAD reported as free although the server then refused it with 412.
    ///
    /// - Returns: whether HEAD is sent again for that name.
    mutating func recordRefusal(of name: Int) -> Bool {
        refusals += 1
        refused = refusals < Self.refusalsBeforeDoubt ? nil : name
        return refused != nil
    }

    // MARK: A name that no file has

    /// The method of the request for a name that no file has.
    var methodForFreeName: String { asksByGet ? "GET" : "HEAD" }

    /// The meaning of the response to the request for a name that no file has.
    enum Finding {
        case namesAreTaken
        /// The request for this name is repeated with another method.
        case continues
        /// The responses to HEAD are not reliable. The file is sent to a name that only this upload uses.
        case headIsNoAnswer
        /// The server responds with success to every address, so it possibly does not store files. The request is repeated later,
        /// and until then the upload sends no file.
        case waits(UploadOutcome)
        /// The server responded with success to every address earlier, but does not do this any more. The names are checked
        /// again.
        case startsOver
    }

    mutating func finding(_ head: ResponseHead, of plan: UploadPlan, _ pauses: Pauses) -> Finding {
        let isSuccess = (200..<300).contains(head.status)
        if isSuccess, !asksByGet, !head.isPage(inPlaceOf: plan) {
            asksByGet = true
            return .continues
        }
        if isSuccess {
            hasWaited = true
            return .waits(head.isPage(inPlaceOf: plan) ? pauses.page(head) : pauses.retry(head, Self.everyAddress))
        }
        if case .retry(let after, let trouble)? = CommonResponse(head, pauses)?.outcome {
            return .waits(.retry(after: after, trouble))
        }
        defer { (asksByGet, hasWaited) = (false, false) }
        if hasWaited { return .startsOver }
        distrustsHead = asksByGet
        return asksByGet ? .headIsNoAnswer : .namesAreTaken
    }

    private static let everyAddress =
        "The server reports success for every address, so the server possibly stores no files. Check the address of the destination."
}

/// Functions for the names of files on a server.
package enum RemoteName {
    /// Returns the form of a name for comparisons. Some servers have file systems that ignore case or the composition of accented
    /// letters.
    package static func folded(_ name: String) -> String { name.precomposedStringWithCanonicalMapping.lowercased() }

    /// The maximum length of a name on file systems behind WebDAV servers, in bytes.
    static let maximumBytes = 255
    /// The maximum number of numbered names that are tried.
    static let maximumIndex = 1000

    /// Returns a valid path segment for any name. Separators become `_`, because some servers decode an encoded slash. Control
    /// characters become `_`, and the names `.` and `..` are replaced because they mean other folders.
    package static func safe(_ name: String) -> String {
        let cleaned = String(
            String.UnicodeScalarView(
                name.unicodeScalars.map { $0 == "/" || $0 == "\\" || $0.value < 32 || $0.value == 127 ? "_" : $0 }))
        switch cleaned {
        case "": return "file"
        case ".": return "_"
        case "..": return "__"
        default: return cleaned
        }
    }

    /// Returns the index of the first free name, or `index` if no name is free.
    static func firstIndex(from index: Int, where isFree: (Int) -> Bool) -> Int {
        (index..<maximumIndex).first(where: isFree) ?? index
    }

    /// Returns the name with a number. Examples: `photo.jpg` for the index 0, `photo-1.jpg` for the index 1.
    static func numbered(_ name: String, _ index: Int) -> String {
        let whole = safe(name)
        var stem = Substring(whole)
        var suffix = Substring()
        if let dot = whole.lastIndex(of: "."), dot != whole.startIndex, whole[dot...].utf8.count <= 32 {
            stem = whole[..<dot]
            suffix = whole[dot...]
        }
        let number = index == 0 ? "" : "-\(index)"
        while stem.utf8.count + number.utf8.count + suffix.utf8.count > maximumBytes, stem.count > 1 { stem.removeLast() }
        return stem + number + suffix
    }

    /// Returns a name with a mark, for example `photo-1a2b3c4d.jpg`. The mark is equal for equal content and differs for other
    /// content.
    static func marked(_ name: String, with mark: String) -> String {
        let whole = numbered(name, 0)
        let kept = String(mark.filter { $0.isASCII && ($0.isLetter || $0.isNumber) }.prefix(8))
        guard let dot = whole.lastIndex(of: "."), dot != whole.startIndex else { return String(whole.prefix(200)) + "-\(kept)" }
        return String(whole[..<dot].prefix(200)) + "-\(kept)" + whole[dot...]
    }

    /// Returns the name of the temporary file for an incomplete upload. Every attempt of an upload uses this name, so that no
    /// temporary file of an earlier attempt remains on the server.
    static func temporary(token: String) -> String {
        let kept = token.unicodeScalars.filter { $0.isASCII && ($0.properties.isAlphabetic || (48...57).contains($0.value)) }
        return ".\(String(String.UnicodeScalarView(kept.prefix(64)))).part"
    }
}
