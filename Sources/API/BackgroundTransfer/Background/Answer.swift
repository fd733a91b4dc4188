import BackgroundLedger
import BackgroundRuntime
import Foundation
import FoundationNetworking
import Glibc
import ProcessSupport
import Spool

/// What an ended transfer brought: the file of its answer, or why there is none.
struct Answer {
    let file: URL?
    let error: URLError?
    private let isAtItsDestination: Bool

    init(_ transfer: TransferRecord) {
        isAtItsDestination = transfer.destination != nil
        guard transfer.hasAnswer else {
            (file, error) = (nil, transfer.urlError)
            return
        }
        let place = transfer.wholeFile(in: AppRuntime.shared.directories.spool)
        // After another fault the file may be there.
        if let place, access(place.path, F_OK) == 0 || !FileFault(errno).isAbsence {
            (file, error) = (place, nil)
        } else if transfer.kind == .upload {
            // What became of it is in the head.
            (file, error) = (nil, nil)
        } else {
            (file, error) = (nil, Self.gone(transfer, place))
        }
    }

    /// Lets the app have the file while `body` runs; what it does not move is removed once it was told.
    func hand(_ body: (URL?) -> Void) {
        guard let file, !isAtItsDestination else { return body(file) }
        let handed = HandedFile(file, in: AppRuntime.shared.directories)
        defer { handed.end() }
        body(handed.url)
    }

    /// Complete once, and the file went since: somebody moved it, or the ledger comes from a backup.
    private static func gone(_ transfer: TransferRecord, _ place: URL?) -> URLError {
        var info: [String: Any] = [
            NSLocalizedDescriptionKey:
                "the download was complete, but its file is gone: \(place?.path ?? "its name is not known")"
        ]
        if let url = URL(string: transfer.url) { info[NSURLErrorFailingURLErrorKey] = url }
        return URLError(.fileDoesNotExist, userInfo: info)
    }
}
