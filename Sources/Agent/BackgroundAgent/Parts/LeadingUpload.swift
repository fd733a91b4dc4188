import BackgroundLedger
import Foundation
import TransferMachines

/// The upload that must be complete before another upload begins, for example the upload of a photo before the upload of its
/// sidecar. This type has only functions.
enum LeadingUpload {
    /// The number of seconds between two checks of the leader. The end of the leader also ends the wait, so that an agent is not
    /// started often for a paused leader.
    private static let pause = 86_400.0

    /// The code of an upload that failed because its leader failed.
    static let failure = URLError.Code.resourceUnavailable

    /// Returns whether an upload can begin. If its leader is not complete, the upload waits. If its leader failed, the upload
    /// fails.
    static func allows(_ transfer: inout TransferRecord, _ pass: inout Pass) throws -> Bool {
        guard let key = transfer.upload?.company?.leader else { return true }
        var leader = try pass.transaction.transfers(ofKeys: [key], session: transfer.session)[key]
        switch leader?.state {
        // The row of the leader is removed only some time after its end.
        case nil, .completed:
            transfer.upload?.join(leader?.upload?.fileName, storedAt: leader?.receipt?.url)
            transfer.note = nil
            return true
        case .failed, .cancelled:
            transfer.note = nil
            try pass.fail(
                &transfer, failure,
                "\(leader?.upload?.fileName ?? "") was not uploaded, and this file belongs to it.")
        case .queued, .running, .waiting, .paused:
            // The leader may have been queued by an earlier command.
            if leader?.upload?.company?.followers.contains(transfer.key) != true {
                var company = leader?.upload?.company ?? UploadCompany()
                company.followers.append(transfer.key)
                leader?.upload?.company = company
                if let leader { try pass.transaction.record(leader) }
            }
            // The wait is not a problem, so it has no reason.
            transfer.note = "begins after the upload of \(leader?.upload?.fileName ?? "")"
            let until = pass.now.addingTimeInterval(pause)
            try pass.transaction.handle(.waits(until: until, .init(code: nil, message: nil)), &transfer, now: pass.now)
        }
        return false
    }
}
