import Spool
import BackgroundLedger
import Foundation
import FoundationNetworking
import TransferMachines

/// Key of the resume data in a failed download's `userInfo`.
public let NSURLSessionDownloadTaskResumeData = "NSURLSessionDownloadTaskResumeData"

/// What a cancelled or failed download leaves to go on from: which part, of which request, of which version of the file.
///
/// Layout: "BTRD", one byte of version, 16 bytes of the payload's SHA-256, the payload as JSON. No path: the part is named by
/// a token that only the ledger can turn into a file. If the part is gone, the download begins anew.
struct ResumeData: Codable, Equatable {
    static let version: UInt8 = 1
    private static let magic = Data("BTRD".utf8)
    private static let digestLength = 16
    /// A request is small; more is not ours.
    private static let maximumLength = 1 << 20

    var token: String
    var method: String
    var url: String
    var headers: [HeaderField]
    var byteCount: Int64
    var totalBytes: Int64?
    var taskDescription: String?
    /// Of an ordinary session's download, of which no ledger knows: what is in its part.
    var partial: PartialFile?

    /// `nil`: nothing is here that could be gone on from.
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

    /// `nil`: not resume data, of another version, cut short or changed.
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
        // Strings and numbers only: encoding them cannot fail.
        let payload = (try? encoder.encode(self)) ?? Data()
        return Self.sealed(payload)
    }

    fileprivate static func sealed(_ payload: Data) -> Data { magic + [version] + digest(of: payload) + payload }

    private static func digest(of payload: Data) -> Data {
        var digest = RunningDigest()
        payload.withUnsafeBytes { digest.update($0) }
        return Data(digest.bytes.prefix(digestLength))
    }

    /// The request that it goes on with.
    var request: URLRequest? { URLRequest(method: method, url: url, headers: headers) }
}

/// For the fuzzer.
package enum ResumeDataFuzzing {
    /// What is taken is what was given out: it encodes to something that reads as the same.
    package static func read(_ data: Data) {
        guard let read = ResumeData(data) else { return }
        precondition(ResumeData(read.data) == read, "resume data changes when it is written again")
        _ = read.request
    }

    /// A payload of anybody's making, with the digest that ours would have.
    package static func sealed(_ payload: Data) -> Data { ResumeData.sealed(payload) }
}
