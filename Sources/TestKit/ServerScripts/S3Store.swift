import Foundation
import Synchronization

/// A fake S3 bucket with faults on demand: it has objects, metadata, conditions and uploads in parts. `FaultyServer.mount(_:)`
/// mounts it. Unlike real servers, the store does not check signatures.
///
/// Each fault in ``faults`` names the method of the requests that fail. For the requests of an upload in parts, the names are
/// `CREATE`, `LIST` and `COMPLETE`. For requests that only test the bucket, the name is `PROBE`.
public final class S3Store: MountedStore {
    private struct Object {
        let bytes: Data
        let digest: String?
    }

    private enum Conditions { case heeded, refused, ignored }

    private struct Upload {
        let key: String
        let digest: String?
        var parts: [Int: Data] = [:]
    }

    private struct State {
        var objects: [String: Object] = [:]
        var uploads: [String: Upload] = [:]
        var made = 0
        var taken = 0
        var conditions = Conditions.heeded
        /// The object that another computer stores directly before the next PUT of a photo; `nil` if no other computer
        /// interferes.
        var rival: Data?
        var completesWithAnError = false
        var clock: Date?
    }

    /// The text with which the path of each URL in the bucket begins.
    public let prefix: String
    /// The faults of uploads to this bucket.
    public let faults = UploadFaults()
    private let state = Mutex(State())

    /// Creates a bucket. The paths of its URLs begin with `prefix`, which does not end with a slash.
    public init(prefix: String = "/bucket") { self.prefix = prefix }

    /// The contents of the objects.
    public var files: [Data] { state.withLock { $0.objects.values.map(\.bytes) } }

    /// The number of uploads in parts that were neither completed nor aborted.
    public var openUploads: Int { state.withLock { $0.uploads.count } }

    /// The number of body bytes in all complete requests.
    public var bytesTaken: Int { state.withLock { $0.taken } }

    /// Stores an object, as if another client had stored it.
    public func put(_ bytes: Data, as key: String) { state.withLock { $0.objects[key] = Object(bytes: bytes, digest: nil) } }

    /// Refuses requests whose time differs by more than 15 minutes from this time, and sends this time in its responses.
    public func setClock(_ date: Date?) { state.withLock { $0.clock = date } }

    /// Responds with 501 to `If-None-Match`, like a server that does not support this header.
    public func forgetConditions() { state.withLock { $0.conditions = .refused } }

    /// Ignores `If-None-Match` from now on, so that objects are replaced.
    public func ignoreConditions() { state.withLock { $0.conditions = .ignored } }

    /// Simulates another computer that stores these bytes under the name of the next photo. The store does this after the client
    /// has checked the name and before the photo arrives.
    public func storeFirst(_ bytes: Data) { state.withLock { $0.rival = bytes } }

    /// The names of the objects, sorted.
    public var keys: [String] { state.withLock { $0.objects.keys.sorted() } }

    /// Responds to the next completion with a success status and an error in the body.
    public func failNextCompletion() { state.withLock { $0.completesWithAnError = true } }

    package func exchange(for request: RecordedRequest) -> any Exchange {
        CollectedExchange(faults, request, as: Self.name(of: request), act: act)
    }

    private static func name(of request: RecordedRequest) -> String {
        let query = items(request)
        if request.path.hasSuffix(".part") { return "PROBE" }
        if request.method == "POST" { return query["uploads"] == nil ? "COMPLETE" : "CREATE" }
        return request.method == "GET" && query["uploadId"] != nil ? "LIST" : request.method
    }

    private static func items(_ request: RecordedRequest) -> [String: String] {
        var items: [String: String] = [:]
        for item in (request.query ?? "").split(separator: "&") {
            let halves = item.split(separator: "=", maxSplits: 1)
            items[String(halves[0])] = halves.count > 1 ? String(halves[1]).removingPercentEncoding ?? "" : ""
        }
        return items
    }

    private static func refusal(of request: RecordedRequest, at clock: Date) -> ResponseScript? {
        let style = Date.ISO8601FormatStyle(dateSeparator: .omitted, timeSeparator: .omitted)
        let time = request.headers["x-amz-date"].flatMap { try? Date($0, strategy: style) } ?? .distantPast
        guard abs(time.timeIntervalSince(clock)) > 900 else { return nil }
        let format = Date.VerbatimFormatStyle(
            format:
                "\(weekday: .abbreviated), \(day: .twoDigits) \(month: .abbreviated) \(year: .defaultDigits) \(hour: .twoDigits(clock: .twentyFourHour, hourCycle: .zeroBased)):\(minute: .twoDigits):\(second: .twoDigits) GMT",
            locale: Locale(identifier: "en_US_POSIX"), timeZone: .gmt, calendar: Calendar(identifier: .gregorian))
        return .status(403, headers: ["Date": clock.formatted(format)])
    }

    private func act(_ request: RecordedRequest, _ body: Data) -> ResponseScript {
        let key = String(request.path.dropFirst(prefix.count + 1)).removingPercentEncoding ?? ""
        let query = Self.items(request)
        return state.withLock { state in
            state.taken += body.count
            if let clock = state.clock, let refusal = Self.refusal(of: request, at: clock) { return refusal }
            if request.headers["If-None-Match"] != nil, state.conditions == .refused {
                return Self.error(501, "NotImplemented", "A header you provided implies functionality that is not implemented.")
            }
            switch Self.name(of: request) {
            case "PROBE" where request.method == "DELETE":
                state.objects[key] = nil
                return .status(204)
            case "PROBE": return Self.put(Object(bytes: body, digest: nil), key, request, &state)
            case "HEAD": return Self.describe(state.objects[key])
            case "GET":
                guard let object = state.objects[key] else { return Self.error(404, "NoSuchKey") }
                return .status(200, headers: Self.metadata(of: object), body: .bytes(object.bytes))
            case "CREATE":
                state.made += 1
                let name = "upload \(state.made)"
                state.uploads[name] = Upload(key: key, digest: request.headers["x-amz-meta-sha256"])
                return .xml("<InitiateMultipartUploadResult><UploadId>\(name)</UploadId></InitiateMultipartUploadResult>")
            case "PUT":
                guard let upload = query["uploadId"] else {
                    if let rival = state.rival { state.objects[key] = Object(bytes: rival, digest: nil) }
                    state.rival = nil
                    return Self.put(Object(bytes: body, digest: request.headers["x-amz-meta-sha256"]), key, request, &state)
                }
                guard let number = query["partNumber"].flatMap(Int.init), state.uploads[upload] != nil else {
                    return Self.error(404, "NoSuchUpload")
                }
                state.uploads[upload]?.parts[number] = body
                return .status(200, headers: ["ETag": "\"part \(number)\""])
            case "LIST": return Self.list(state.uploads[query["uploadId"] ?? ""], after: query["part-number-marker"])
            case "COMPLETE": return Self.complete(query["uploadId"] ?? "", request, body, &state)
            case "DELETE" where query["uploadId"] == nil:
                state.objects[key] = nil
                return .status(204)
            case "DELETE":
                guard state.uploads.removeValue(forKey: query["uploadId"] ?? "") != nil else {
                    return Self.error(404, "NoSuchUpload")
                }
                return .status(204)
            default: return Self.error(405, "MethodNotAllowed")
            }
        }
    }

    private static func describe(_ object: Object?) -> ResponseScript {
        guard let object else { return .status(404) }
        var headers: HeaderList = ["Content-Length": "\(object.bytes.count)"]
        headers.lines += metadata(of: object).lines
        return .head(headers)
    }

    private static func metadata(of object: Object) -> HeaderList {
        object.digest.map { ["x-amz-meta-sha256": $0] } ?? [:]
    }

    private static func put(_ object: Object, _ key: String, _ request: RecordedRequest, _ state: inout State) -> ResponseScript {
        guard request.headers["If-None-Match"] == nil || state.conditions == .ignored || state.objects[key] == nil else {
            return error(412, "PreconditionFailed")
        }
        state.objects[key] = object
        return .status(200, headers: ["ETag": "\"whole\""])
    }

    /// Returns a page with at most two parts, so that clients have to request further pages.
    private static func list(_ upload: Upload?, after marker: String?) -> ResponseScript {
        guard let upload else { return error(404, "NoSuchUpload") }
        let rest = upload.parts.sorted { $0.key < $1.key }.filter { $0.key > Int(marker ?? "0") ?? 0 }
        let page = rest.prefix(2).map { number, bytes in
            "<Part><PartNumber>\(number)</PartNumber><ETag>&quot;part \(number)&quot;</ETag><Size>\(bytes.count)</Size></Part>"
        }
        let next = rest.prefix(2).last.map { "<NextPartNumberMarker>\($0.key)</NextPartNumberMarker>" } ?? ""
        return .xml("<ListPartsResult>\(next)<IsTruncated>\(rest.count > 2)</IsTruncated>\(page.joined())</ListPartsResult>")
    }

    private static func complete(
        _ name: String, _ request: RecordedRequest, _ body: Data, _ state: inout State
    ) -> ResponseScript {
        guard let upload = state.uploads[name] else { return error(404, "NoSuchUpload") }
        if state.completesWithAnError {
            state.completesWithAnError = false
            return .xml("<Error><Code>InternalError</Code><Message>We encountered an internal error.</Message></Error>")
        }
        let named = String(decoding: body, as: UTF8.self).components(separatedBy: "<PartNumber>").dropFirst()
            .compactMap { Int($0.prefix { $0 != "<" }) }
        guard named == upload.parts.keys.sorted() else { return error(400, "InvalidPart") }
        let bytes = upload.parts.sorted { $0.key < $1.key }.reduce(Data()) { $0 + $1.value }
        let answer = put(Object(bytes: bytes, digest: upload.digest), upload.key, request, &state)
        guard state.objects[upload.key]?.bytes == bytes else { return answer }
        state.uploads[name] = nil
        return .xml("<CompleteMultipartUploadResult><Key>\(upload.key)</Key></CompleteMultipartUploadResult>")
    }

    private static func error(_ status: Int, _ code: String, _ message: String = "") -> ResponseScript {
        .xml("<Error><Code>\(code)</Code><Message>\(message)</Message></Error>", status: status)
    }
}
