/// The comparison of a file on a server with the snapshot of an upload.
///
/// A file of the right name and length can be another machine's. All of a small file is read, and four blocks of a large one.
///
/// Blocks are no proof if this upload sent nothing to the name: an earlier version of the same file often has its length, and differs in a
/// few bytes. Then all of a large file is read, too.
struct ReadBack: Equatable, Sendable {
    /// Bytes of a small file, at most.
    static let maximumBytes: Int64 = 1 << 20
    /// Blocks of a file that is larger than that: the first, the last, and two between them.
    static let blocks: Int64 = 4

    /// What is known after a response.
    enum Finding: Equatable {
        case ours(UploadProof)
        case another
        /// The block is the snapshot's, and this is the next question.
        case next(ReadBack)
        /// The file is not the one whose length was looked at.
        case changed
        /// The response broke off, or the snapshot could not be read.
        case unclear
        /// The server does not send the file.
        case refused
    }

    /// Bytes of the snapshot.
    let byteCount: Int64
    /// The server showed the length of the file.
    let isMeasured: Bool
    private let isOfAll: Bool
    private var block: Int64 = 0

    /// - Parameter wasSent: this upload sent its file to the name.
    init(_ byteCount: Int64, wasSent: Bool = true, isMeasured: Bool = true) {
        (self.byteCount, self.isMeasured) = (byteCount, isMeasured)
        isOfAll = !wasSent || byteCount <= Self.maximumBytes
    }

    /// What the body of the next response is compared with.
    var part: SnapshotPart {
        if isOfAll { return SnapshotPart(start: 0, count: byteCount, total: byteCount) }
        let count = Self.maximumBytes / Self.blocks
        return SnapshotPart(start: (byteCount - count) * block / (Self.blocks - 1), count: count, total: byteCount)
    }

    /// Headers of the request.
    var headers: [HeaderField] {
        isOfAll ? [] : [HeaderField("Range", "bytes=\(part.start)-\(part.start + part.count - 1)")]
    }

    /// The command that sends the request and compares the response.
    ///
    /// - Parameter request: a GET of the file with ``headers``.
    func command(_ request: WireRequest, persistFirst memory: UploadMemory) -> UploadCommand {
        var request = request
        // The sink that compares the body also ends it.
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

    /// - Parameter same: the finding if the bytes are the snapshot's.
    private func finding(_ comparison: BodyComparison?, after same: Finding) -> Finding {
        switch comparison {
        case .same: same
        case .differs: .another
        case .incomplete: .unclear
        case .impossible, nil: .refused
        }
    }
}

/// A part of an upload's snapshot that the body of a response is compared with.
package struct SnapshotPart: Equatable, Sendable {
    package var start: Int64
    package var count: Int64
    /// Bytes of the snapshot.
    package var total: Int64

    package init(start: Int64, count: Int64, total: Int64) {
        (self.start, self.count, self.total) = (start, count, total)
    }

    /// Returns the bytes of the snapshot that the body of this response is compared with.
    ///
    /// A server that does not know ranges sends the complete file, and all of it is compared.
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

/// How the body of a response compares with a part of a snapshot.
package enum BodyComparison: Equatable, Sendable {
    /// Each byte that was requested came, and is the snapshot's.
    case same
    /// A byte differs, or the file is longer than the snapshot.
    case differs
    /// The body ended early, or the snapshot could not be read.
    case incomplete
    /// The body is not the bytes that were requested.
    case impossible
}
