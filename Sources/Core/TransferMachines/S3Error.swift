import Foundation

/// The body of a response by which S3 refuses a request.
struct S3Error {
    let code: String
    let message: String
    let region: String?

    /// Creates an error. Returns `nil` if the body is not an error of S3.
    init?(_ body: Data) {
        guard let answer = ResponseXML.read(body), let error = answer.name == "Error" ? answer : answer["Error"],
            let code = error["Code"]?.text
        else { return nil }
        self.code = String(ServerText.line(code).prefix(64))
        message = ServerText.line(error["Message"]?.text)
        region = error["Region"]?.text
    }

    /// The error codes of temporary problems: the server is busy, it waited too long for the bytes, or its clock differs.
    private static let passing: Set<String> = [
        "RequestTimeout", "RequestTimeTooSkewed", "OperationAborted", "ConditionalRequestConflict", "InternalError", "SlowDown",
        "ServiceUnavailable",
    ]

    /// The error codes for bytes that were changed or lost on the way to the server.
    private static let aboutBytes: Set<String> = [
        "IncompleteBody", "BadDigest", "XAmzContentSHA256Mismatch", "XAmzContentChecksumMismatch",
    ]

    /// `true` if the server may accept the same bytes when the upload sends them again.
    var isAboutBytes: Bool { Self.aboutBytes.contains(code) }

    /// `true` if the user or the server has no space left. Ceph responds with `QuotaExceeded`, and MinIO responds with
    /// `XMinioStorageFull`.
    private var isFull: Bool { code.contains("QuotaExceeded") || code.contains("StorageFull") }

    /// Returns the pause after which the request is repeated. Returns `nil` if the error code does not require a pause.
    func pause(_ head: ResponseHead, _ pauses: Pauses) -> UploadOutcome? {
        if Self.passing.contains(code) { return pauses.retry(head) }
        return isFull ? pauses.full(head, "The server has no space left for this user (\(code)).") : nil
    }
}
