import Foundation

/// Uploads a file by a single POST of `multipart/form-data` (RFC 7578). The server must accept files in the form that a browser
/// sends.
///
/// The upload cannot check whether the server has a file. If the response is lost, the form is sent again with the same
/// `Idempotency-Key`. If the server does not support this header, the server may store the file twice. A redirect with status 303
/// is a success. Other redirects, and a 303 to a login page, may come from a gateway in front of the server.
struct FormUpload: UploadProtocol {
    let plan: UploadPlan

    private let form: FormBody
    /// A measure of the complete forms without a response. A form without a response in time counts four times as much as a form
    /// after which the connection broke, because the server may not have received all bytes of such a form.
    private var losses: Int

    /// The greatest measure. The number of forms is limited because the server may have stored each form.
    private static let maximumLosses = 12
    /// The number of seconds without a received byte after which an attempt fails. A server may examine the photo before it
    /// responds.
    static let patience = 300.0

    init(plan: UploadPlan, resuming memory: UploadMemory? = nil) {
        self.plan = plan
        losses = memory?.step == .put ? memory?.creations ?? 0 : 0
        form = FormBody(
            token: plan.order.token, fileField: plan.order.fieldName, fileName: plan.order.fileName,
            contentType: plan.order.mediaType)
    }

    func next() -> UploadCommand {
        guard losses < Self.maximumLosses else {
            return .fail(TransferTrouble(code: -1005, message: Self.lostResponses))
        }
        let headers = [form.contentType, HeaderField("Idempotency-Key", "\"\(FormBody.plain(plan.order.token))\"")]
        var request = plan.request("POST", plan.collectionURL, headers)
        request.idleTimeout = max(request.idleTimeout, Self.patience)
        return .send(request, form.content, persistFirst: UploadMemory(step: .put, creations: losses == 0 ? nil : losses))
    }

    private static func refused(_ reason: String) -> String {
        "The server responded that it did not store the file" + (reason.isEmpty ? "." : ": \(reason)")
    }

    private static let lostResponses = """
        The complete file was sent several times, and the server did not respond. Check whether the file is on the \
        server before you retry the upload.
        """

    mutating func lost(_ end: WireEnd) {
        // Only forms that were sent completely are counted, because the server cannot have stored a part of a form.
        guard end.bytesSent >= form.length(around: plan.order.byteCount) else { return }
        switch end.failure {
        case .stalled: losses += 4
        case .connectionLost: losses += 1
        default: break
        }
    }

    mutating func answered(_ head: ResponseHead, _ end: WireEnd, _ pauses: Pauses) -> UploadOutcome {
        switch head.status {
        case 200..<300 where !head.isUnencrypted && head.isPage && Self.asksForPassword(end.body):
            .fail(head, -1013, "The server sent a page that asks for a password.")
        case 200..<300:
            if let refusal = FormRefusal(end.body) {
                .fail(head, -1011, Self.refused(refusal.reason))
            } else {
                .finished(remoteURL: place(of: head))
            }
        case 303 where !head.leadsToALogInPage && end.bytesSent >= form.length(around: plan.order.byteCount):
            .finished(remoteURL: place(of: head))
        // The server responded before it received the complete form, so the response is not about this photo.
        case 303 where !head.leadsToALogInPage: pauses.retry(head, UploadMachine.answeredEarly)
        // Many servers respond to a stored form with 302, because browsers accept this status. However, servers also respond with
        // 302 or 303 if a session has expired.
        case 300..<400 where end.bytesSent >= form.length(around: plan.order.byteCount) && head.status != 304:
            .fail(head, -1010, CommonResponse.ledOn(to: CommonResponse.place(head)))
        default: pauses.afterOther(head)
        }
    }

    /// Returns `false`. If a form is sent again, the server may store the file twice.
    func mayPass(_ head: ResponseHead, _ end: WireEnd) -> Bool { false }

    /// Returns whether the page is the login page of a gateway. Over http, ``DoubtedUpload`` examines the response.
    private static func asksForPassword(_ body: Data) -> Bool {
        let page = String(decoding: body, as: UTF8.self).lowercased().filter { !$0.isWhitespace }
        return page.contains(#"type="password""#) || page.contains("type='password'") || page.contains("type=password")
    }

    /// Returns the address of the file that the server reported, or the address of the upload.
    private func place(of head: ResponseHead) -> String {
        let base = URL(string: plan.collectionURL)
        // The address in a 303 usually belongs to a confirmation page, and not to the file.
        let location = head.status == 201 ? head["Location"] : nil
        let said = location.flatMap { URL(string: $0, relativeTo: base)?.absoluteURL }
        // The reported address is used only if its scheme is at least as secure as the scheme of the upload.
        let scheme = said?.scheme?.lowercased()
        if let said, scheme == "https" || scheme == "http" && base?.scheme?.lowercased() == "http" {
            return PublicAddress.of(said.absoluteString, keepsQuery: true)
        }
        return PublicAddress.of(plan.collectionURL)
    }
}
