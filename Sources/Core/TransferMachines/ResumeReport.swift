/// A report for the history about whether earlier bytes of a download are used.
package enum ResumeReport: Codable, Equatable, Sendable, CustomStringConvertible {
    /// The reason why earlier bytes are not used.
    package enum Reason: String, Codable, Sendable {
        case noValidator = "the server sent no usable validator (ETag or Last-Modified)"
        case changed = "the file changed"
        case rangeIgnored = "the server sent the complete file"
        case badPart = "the part that the server sent does not fit"
        case notSatisfiable = "the server does not have the requested part"
        case otherAddress = "another address responded"
        case damaged = "the digest of the file did not match"
        case notResumable = "this request cannot be resumed"
    }

    /// No earlier bytes were stored.
    case fresh
    case resumed(at: Int64)
    case startedOver(Reason)

    package var description: String {
        switch self {
        case .fresh: "received from the start"
        case .resumed(let offset): "resumed at \(offset) with If-Range"
        case .startedOver(let reason): "started over: \(reason.rawValue)"
        }
    }
}
