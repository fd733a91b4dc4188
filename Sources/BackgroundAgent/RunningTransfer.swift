import BackgroundLedger
import BackgroundScheduling
import Foundation
import TransferMachines

/// One attempt that runs now.
struct RunningTransfer {
    enum Work {
        case download(DownloadFile)
        case upload(UploadMachine, UploadFile?, AnswerSink)
    }

    let attempt: AttemptID
    var work: Work
    /// Bytes on the wire before this attempt.
    let wireBase: Int64
    let session: String
    let host: String
    let needs: TransferNeeds
    let target: UploadTarget?

    init(_ start: PreparedTransfer) {
        attempt = start.attempt
        work = start.work
        wireBase = start.wireBase
        session = start.session
        host = start.host
        needs = start.needs
        target = start.target
    }
}

/// What the transport is asked to do, once it is committed.
struct PreparedTransfer {
    let attempt: AttemptID
    let request: WireRequest
    let source: (any BodySource)?
    let sink: any BodySink
    let work: RunningTransfer.Work
    let wireBase: Int64
    let session: String
    let host: String
    let needs: TransferNeeds
    let target: UploadTarget?

    init(
        _ transfer: TransferRecord, request: WireRequest, source: (any BodySource)?, sink: any BodySink,
        work: RunningTransfer.Work
    ) {
        attempt = AttemptID(transfer: transfer.id!, number: transfer.attemptNumber)
        self.request = request
        self.source = source
        self.sink = sink
        self.work = work
        wireBase = transfer.bytesOnWire
        session = transfer.session
        host = transfer.host
        needs = transfer.needs
        target = UploadTarget(transfer)
    }
}

/// The name that an upload wants on its server. Two that want the same one go one after the other: at the same time both would
/// find it free, and servers that know no condition would keep the second alone.
struct UploadTarget: Hashable {
    private let folder: String
    private let name: String

    /// `nil`: not an upload that has a name of its own there.
    init?(_ transfer: TransferRecord) {
        guard let order = transfer.upload, order.method != .plain else { return nil }
        (folder, name) = (transfer.url, order.fileName)
    }
}
