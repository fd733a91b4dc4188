import Foundation

/// Uploads a file with a single PUT to a presigned address. The address is used unchanged, because its query contains a signature
/// for exactly this request.
///
/// No other request is sent, because the signature is valid only for this method. If the response is lost, the PUT is sent again.
/// The repetition is safe, because each PUT stores equal bytes at the same address.
struct AddressUpload: UploadProtocol {
    let plan: UploadPlan

    /// Returns whether the address belongs to one file and not to a folder. An address with a query belongs to one file.
    static func isMeant(by plan: UploadPlan) -> Bool {
        plan.collectionURL.prefix { $0 != "#" }.contains("?")
    }

    func next() -> UploadCommand {
        let content = UploadContent.snapshot(from: 0, count: plan.order.byteCount)
        return .send(plan.request("PUT", plan.collectionURL), content, persistFirst: UploadMemory(step: .put))
    }

    mutating func answered(_ head: ResponseHead, _ end: WireEnd, _ pauses: Pauses) -> UploadOutcome {
        if head.status >= 400, let outcome = S3Error(end.body)?.pause(head, pauses) { return outcome }
        return switch head.status {
        case 200..<300: .finished(remoteURL: PublicAddress.of(plan.collectionURL))
        case 400, 401, 403:
            .fail(
                head, -1102,
                "The server refuses this presigned address, which may have expired. Configure a new address, then retry the upload."
            )
        default: pauses.afterOther(head)
        }
    }

    func mayPass(_ head: ResponseHead, _ end: WireEnd) -> Bool {
        head.status == 409 || S3Error(end.body)?.isAboutBytes == true
    }
}
