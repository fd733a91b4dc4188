import Foundation

/// One POST of `multipart/form-data` (RFC 7578): for servers that take files the way a browser sends them.
///
/// Such a server has no question to ask: after a lost answer the form is sent again, under the same `Idempotency-Key`, and a
/// server that does not know that header has the file twice. A redirect is believed only as 303, which means "done, look
/// there"; the others may lead to a page that asks for a login.
struct FormUpload: UploadProtocol {
    let plan: UploadPlan

    private let form: FormBody

    init(plan: UploadPlan) {
        self.plan = plan
        form = FormBody(
            token: plan.order.token, fileField: plan.order.fieldName, fileName: plan.order.fileName,
            contentType: plan.order.mediaType)
    }

    func next() -> UploadCommand {
        let headers = [form.contentType, HeaderField("Idempotency-Key", "\"\(FormBody.plain(plan.order.token))\"")]
        return .send(plan.request("POST", plan.collectionURL, headers), form.content, persistFirst: UploadMemory(step: .put))
    }

    mutating func answered(_ head: ResponseHead, _ end: WireEnd, _ pauses: Pauses) -> UploadOutcome {
        switch head.status {
        case 200..<300: .finished(remoteURL: place(of: head))
        case 303 where end.bytesSent >= form.length(around: plan.order.byteCount): .finished(remoteURL: place(of: head))
        // Answered before it had the whole form: whatever it says, it is not about this photo.
        case 303: pauses.retry(head, UploadMachine.answeredEarly)
        // Many thank by 302, as browsers take it; a session that has ended leads to its log-in likewise.
        case 300..<400 where end.bytesSent >= form.length(around: plan.order.byteCount) && head.status != 304:
            .fail(head, -1010, CommonAnswer.ledOn(to: CommonAnswer.place(head)))
        default: pauses.afterOther(head)
        }
    }

    /// Where the server says it is; else where it was sent.
    private func place(of head: ResponseHead) -> String {
        let base = URL(string: plan.collectionURL)
        // Of a 303 it is a page that thanks, mostly, and not the file.
        let location = head.status == 201 ? head["Location"] : nil
        let said = location.flatMap { URL(string: $0, relativeTo: base)?.absoluteURL }
        // Never less encrypted than what was sent.
        let scheme = said?.scheme?.lowercased()
        if let said, scheme == "https" || scheme == "http" && base?.scheme?.lowercased() == "http" {
            return PublicAddress.of(said.absoluteString, keepsQuery: true)
        }
        return PublicAddress.of(plan.collectionURL)
    }
}
