import Foundation

/// One POST of `multipart/form-data` (RFC 7578): for servers that take files the way a browser sends them.
///
/// Such a server has no question to ask: after a lost answer the form is sent again, under the same `Idempotency-Key`, and a
/// server that does not know that header has the file twice. A redirect is believed only as 303, which means "done, look
/// there"; the others may lead to a page that asks for a login.
struct FormUpload: UploadProtocol {
    let plan: UploadPlan

    func next() -> UploadCommand {
        let headers = [
            HeaderField("Content-Type", "multipart/form-data; boundary=\(boundary)"),
            HeaderField("Idempotency-Key", "\"\(token)\""),
        ]
        return .send(
            plan.request("POST", plan.collectionURL, headers), .wrapped(before: opening, after: closing),
            persistFirst: UploadMemory(step: .put))
    }

    mutating func answered(_ head: ResponseHead, _ end: WireEnd, _ pauses: Pauses) -> UploadOutcome {
        switch head.status {
        case 200..<300 where end.bytesSent >= wholeLength, 303 where end.bytesSent >= wholeLength:
            .finished(remoteURL: place(of: head))
        // Answered before it had the whole form: whatever it says, it is not about this photo.
        case 200..<300, 303: pauses.retry(head, "The server answered before it had the whole file.")
        default: pauses.afterOther(head)
        }
    }

    /// Where the server says it is; else where it was sent.
    private func place(of head: ResponseHead) -> String {
        let base = URL(string: plan.collectionURL)
        let said = head["Location"].flatMap { URL(string: $0, relativeTo: base)?.absoluteURL }
        // Never less encrypted than what was sent.
        let scheme = said?.scheme?.lowercased()
        if let said, scheme == "https" || scheme == "http" && base?.scheme?.lowercased() == "http" {
            return PublicAddress.of(said.absoluteString, keepsQuery: true)
        }
        return PublicAddress.of(plan.collectionURL)
    }

    // MARK: The form

    private var token: String { String(plan.token.filter { $0.isASCII && ($0.isLetter || $0.isNumber) }.prefix(48)) }

    private var boundary: String { "----stormy-\(token)" }

    private var opening: Data {
        let name = Self.quoted(RemoteName.safe(plan.fileName))
        return Data(
            """
            --\(boundary)\r
            Content-Disposition: form-data; name="\(Self.quoted(plan.field))"; filename="\(name)"\r
            Content-Type: \(Self.oneLine(plan.contentType))\r
            \r

            """.utf8)
    }

    private var closing: Data { Data("\r\n--\(boundary)--\r\n".utf8) }

    private var wholeLength: Int64 { Int64(opening.count + closing.count) + plan.byteCount }

    /// As browsers write it (HTML standard, multipart/form-data encoding): quotes and line ends as percent codes.
    private static func quoted(_ text: String) -> String {
        // By scalars: to Swift a carriage return and a line feed together are one character, and neither of them.
        text.unicodeScalars.reduce(into: "") { result, scalar in
            switch scalar {
            case "\"": result += "%22"
            case "\r": result += "%0D"
            case "\n": result += "%0A"
            default: result.unicodeScalars.append(scalar)
            }
        }
    }

    private static func oneLine(_ text: String) -> String {
        String(text.unicodeScalars.filter { $0.value >= 32 }.map(Character.init))
    }
}
