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

    init(_ start: PreparedTransfer) {
        attempt = start.attempt
        work = start.work
        wireBase = start.wireBase
        session = start.session
        host = start.host
        needs = start.needs
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
    }
}
