/// Compares a file on a server with the snapshot of an upload.
///
/// The comparison is necessary because another machine may have stored a file with the same name and length. A small file is read
/// completely. For a large file, four blocks are read.
///
/// If this upload sent nothing to the name, four equal blocks do not prove that the files are equal. An earlier version of the
/// file often has the same length and differs in a few bytes. So in such an upload, a large file is also read completely.
struct ReadBack: Equatable, Sendable {
    /// The maximum number of bytes of a small file.
    static let maximumBytes: Int64 = 1 << 20
    /// The number of blocks that are read of a large file: the first block, the last block and two blocks between them.
    static let blocks: Int64 = 4

    /// The conclusion about the file on the server after a response.
    enum Finding: Equatable {
        case ours(UploadProof)
        case another
        /// The block equals the block of the snapshot. The comparison continues with this request.
        case next(ReadBack)
        /// The file has another length than in the earlier check.
        case changed
        /// The response was interrupted, or the snapshot could not be read.
        case unclear
        /// The server does not send the file.
        case refused
    }

    /// The total number of bytes of the snapshot.
    let byteCount: Int64
    /// `true` if the server showed the length of the file.
    let isMeasured: Bool
    private let isOfAll: Bool
    private var block: Int64 = 0

    /// - Parameter wasSent: `true` if this upload sent its file to the name.
    init(_ byteCount: Int64, wasSent: Bool = true, isMeasured: Bool = true) {
        (self.byteCount, self.isMeasured) = (byteCount, isMeasured)
        isOfAll = !wasSent || byteCount <= Self.maximumBytes
    }

    /// The part of the snapshot that is compared with the body of the next response.
    var part: SnapshotPart {
        if isOfAll { return SnapshotPart(start: 0, count: byteCount, total: byteCount) }
        let count = Self.maximumBytes / Self.blocks
        return SnapshotPart(start: (byteCount - count) * block / (Self.blocks - 1), count: count, total: byteCount)
    }

    /// The headers of the next request. The list is empty if the complete file is requested.
    var headers: [HeaderField] {
        isOfAll ? [] : [HeaderField("Range", "bytes=\(part.start)-\(part.start + part.count - 1)")]
    }

    /// The command that sends the request and compares the response.
    ///
    /// - Parameter request: A GET of the file with ``headers``.
    func command(_ request: WireRequest, persistFirst memory: UploadMemory) -> UploadCommand {
        var request = request
        // The request needs no maximum length, because the sink that compares the body also ends a response that is too long.
        request.maximumBodyBytes = nil
        return .compare(request, part, persistFirst: memory)
    }

    func finding(_ head: ResponseHead, _ comparison: BodyComparison?) -> Finding {
        switch head.status {
        case 200:
            if let length = head.contentLength, head.contentCoding == nil, length != byteCount { return .changed }
            return finding(comparison, after: .ours(.digest))
        case 206:
            var next = self
            next.block += 1
            let isLast = isOfAll || next.block == Self.blocks
            return finding(comparison, after: isLast ? .ours(isOfAll ? .digest : .content) : .next(next))
        case 404, 409, 410, 416: return .changed
        default: return .refused
        }
    }

    /// - Parameter same: The result if the bytes equal the bytes of the snapshot.
    private func finding(_ comparison: BodyComparison?, after same: Finding) -> Finding {
        switch comparison {
        case .same: same
        case .differs: .another
        case .incomplete: .unclear
        case .impossible, nil: .refused
        }
    }
}

/// The part of an upload's snapshot that is compared with the body of a response.
package struct SnapshotPart: Equatable, Sendable {
    package var start: Int64
    package var count: Int64
    /// The total number of bytes of the snapshot.
    package var total: Int64

    package init(start: Int64, count: Int64, total: Int64) {
        (self.start, self.count, self.total) = (start, count, total)
    }

    /// Returns the range of the snapshot that is compared with the body of this response.
    ///
    /// If a server does not support ranges, the server sends the complete file, and the complete file is compared.
    ///
    /// - Returns: `nil` if the body cannot be compared.
    package func range(in head: ResponseHead) -> Range<Int64>? {
        guard head.contentCoding == nil else { return nil }
        switch head.status {
        case 200: return 0..<total
        case 206:
            guard case .part(let first, let last, let size)? = head["Content-Range"].flatMap({ ContentRange($0) }),
                first == start, last == start + count - 1, size == nil || size == total
            else { return nil }
            return start..<start + count
        default: return nil
        }
    }
}

/// The result of a comparison between the body of a response and a part of a snapshot.
package enum BodyComparison: Equatable, Sendable {
    /// Every requested byte arrived and equals the byte of the snapshot.
    case same
    /// A byte differs, or the file is longer than the snapshot.
    case differs
    /// The body ended early, or the snapshot could not be read.
    case incomplete
    /// The body cannot be compared, because it does not consist of the requested bytes.
    case impossible
}
