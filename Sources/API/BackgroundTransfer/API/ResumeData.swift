import Spool
import BackgroundLedger
import Foundation
import FoundationNetworking
import TransferMachines

/// The key of the resume data in the `userInfo` of a failed download.
public let NSURLSessionDownloadTaskResumeData = "NSURLSessionDownloadTaskResumeData"

/// The data with which a cancelled or failed download can continue. Resume data contains a reference to the partial file, the
/// request, and the version of the server's file.
///
/// The layout is "BTRD", one byte with the version of this format, 16 bytes of the payload's SHA-256, and the payload as JSON.
/// The payload contains a token instead of the path of the partial file. For a background session, the ledger contains the path
/// that belongs to a token. If the partial file does not exist any more, the download begins from the start.
struct ResumeData: Codable, Equatable {
    static let version: UInt8 = 1
    private static let magic = Data("BTRD".utf8)
    private static let digestLength = 16
    /// The maximum length in bytes. Requests are small, so longer data cannot be resume data of this module.
    private static let maximumLength = 1 << 20

    var token: String
    var method: String
    var url: String
    var headers: [HeaderField]
    var byteCount: Int64
    var totalBytes: Int64?
    var taskDescription: String?
    /// The state of the partial file, if the download belongs to an ordinary session. `nil` for a background session, because the
    /// ledger contains this state.
    var partial: PartialFile?

    /// Creates the resume data of a transfer. Returns `nil` if the transfer has no partial file with which the download can
    /// continue.
    init?(_ transfer: TransferRecord) {
        guard transfer.kind == .download, let partial = transfer.partial, partial.isResumable, let token = transfer.resumeToken
        else { return nil }
        self.token = token
        method = transfer.method
        url = transfer.url
        headers = transfer.headers
        byteCount = partial.durableBytes
        totalBytes = partial.totalBytes
        taskDescription = transfer.taskDescription
    }

    init(token: String, order: WireOrder, partial: PartialFile, taskDescription: String?) {
        self.token = token
        (method, url, headers) = (order.method, order.url, order.headers)
        (byteCount, totalBytes) = (partial.durableBytes, partial.totalBytes)
        self.taskDescription = taskDescription
        self.partial = partial
    }

    /// Decodes resume data. Returns `nil` if the data is not resume data, has another format version, is incomplete, or was
    /// changed.
    init?(_ data: Data) {
        let data = Data(data)
        let head = Self.magic.count + 1 + Self.digestLength
        guard data.count > head, data.count <= Self.maximumLength, data.starts(with: Self.magic),
            data[Self.magic.count] == Self.version
        else { return nil }
        let payload = data[head...]
        guard data[(Self.magic.count + 1)..<head] == Self.digest(of: payload),
            let read = try? JSONDecoder().decode(ResumeData.self, from: payload), read.byteCount >= 0
        else { return nil }
        self = read
    }

    var data: Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        // The payload contains only strings and numbers, so the encoding cannot fail.
        let payload = (try? encoder.encode(self)) ?? Data()
        return Self.sealed(payload)
    }

    fileprivate static func sealed(_ payload: Data) -> Data { magic + [version] + digest(of: payload) + payload }

    private static func digest(of payload: Data) -> Data {
        var digest = RunningDigest()
        payload.withUnsafeBytes { digest.update($0) }
        return Data(digest.bytes.prefix(digestLength))
    }

    /// The request with which the download continues.
    var request: URLRequest? { URLRequest(method: method, url: url, headers: headers) }
}

/// Functions with which the fuzzer tests resume data.
package enum ResumeDataFuzzing {
    /// Checks that valid resume data does not change when it is encoded and decoded again.
    package static func read(_ data: Data) {
        guard let read = ResumeData(data) else { return }
        precondition(ResumeData(read.data) == read, "resume data differs after it is encoded and decoded")
        _ = read.request
    }

    /// Returns resume data with this payload and a valid digest.
    package static func sealed(_ payload: Data) -> Data { ResumeData.sealed(payload) }
}
