/// A report for the history. The report shows whether the download uses bytes that were stored earlier.
package enum ResumeReport: Codable, Equatable, Sendable, CustomStringConvertible {
    /// The reason why stored bytes are not used.
    package enum Reason: String, Codable, Sendable {
        case noValidator = "the server sent no usable validator (ETag or Last-Modified)"
        case changed = "the file changed"
        case rangeIgnored = "the server sent the complete file"
        case badPart = "the server sent a part that does not fit the stored bytes"
        case notSatisfiable = "the server does not have the requested part"
        case otherAddress = "another address responded"
        case damaged = "the digest of the file did not match"
        case notResumable = "a download with this request cannot be resumed"
    }

    /// No bytes were stored earlier.
    case fresh
    case resumed(at: Int64)
    case startedOver(Reason)

    package var description: String {
        switch self {
        case .fresh: "the download began at byte 0"
        case .resumed(let offset): "the download continued at byte \(offset) with If-Range"
        case .startedOver(let reason): "the download started over, because \(reason.rawValue)"
        }
    }
}
