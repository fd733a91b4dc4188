import Foundation

/// One POST of `multipart/form-data` (RFC 7578): for servers that take files the way a browser sends them.
///
/// Such a server has no question to ask: after a lost answer the form is sent again, under the same `Idempotency-Key`, and a
/// server that does not know that header has the file twice. A redirect is believed only as 303, which means "done, look
/// there"; the others, and a 303 to a page for a log-in, may come from a gateway before the server.
struct FormUpload: UploadProtocol {
    let plan: UploadPlan

    private let form: FormBody
    /// Whole forms for which the server sent no response in time.
    private var losses: Int

    /// The server may have stored each of them.
    private static let maximumLosses = 3
    /// Seconds without a byte. A server may examine the photo before it answers.
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

    private static let lostResponses = """
        The server received the file \(maximumLosses) times and did not answer: whether it is there is not known. Look there before it is \
        sent again.
        """

    mutating func lost(_ end: WireEnd) {
        // After a connection that broke, a part of the form may not have arrived.
        if end.failure == .stalled, end.bytesSent >= form.length(around: plan.order.byteCount) { losses += 1 }
    }

    mutating func answered(_ head: ResponseHead, _ end: WireEnd, _ pauses: Pauses) -> UploadOutcome {
        switch head.status {
        case 200..<300 where !head.isUnencrypted && head.isPage && Self.asksForPassword(end.body):
            .fail(head, -1013, "The server answered with a page that asks for a password.")
        case 200..<300: .finished(remoteURL: place(of: head))
        case 303 where !head.leadsToALogInPage && end.bytesSent >= form.length(around: plan.order.byteCount):
            .finished(remoteURL: place(of: head))
        // Answered before it had the whole form: whatever it says, it is not about this photo.
        case 303 where !head.leadsToALogInPage: pauses.retry(head, UploadMachine.answeredEarly)
        // Many servers answer a stored form with 302, as browsers accept it. A session that has ended is answered with 302 or 303.
        case 300..<400 where end.bytesSent >= form.length(around: plan.order.byteCount) && head.status != 304:
            .fail(head, -1010, CommonAnswer.ledOn(to: CommonAnswer.place(head)))
        default: pauses.afterOther(head)
        }
    }

    /// The server may have the file twice if a form is sent again.
    func mayPass(_ head: ResponseHead, _ end: WireEnd) -> Bool { false }

    /// A gateway's page for a log-in. Over http the question of ``DoubtedUpload`` decides.
    private static func asksForPassword(_ body: Data) -> Bool {
        let page = String(decoding: body, as: UTF8.self).lowercased().filter { !$0.isWhitespace }
        return page.contains(#"type="password""#) || page.contains("type='password'") || page.contains("type=password")
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
