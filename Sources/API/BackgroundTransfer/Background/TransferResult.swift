import BackgroundLedger
import BackgroundRuntime
import Foundation
import FoundationNetworking
import Glibc
import ProcessSupport
import Spool

/// The result of an ended transfer: the file with the response, or the error.
struct TransferResult {
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
        // If `access` fails, the file may still exist, unless the error number means that the file does not exist.
        if let place, access(place.path, F_OK) == 0 || !FileFault(errno).isAbsence {
            (file, error) = (place, nil)
        } else if transfer.kind == .upload {
            // For an upload no file is needed, because the response headers show the result.
            (file, error) = (nil, nil)
        } else {
            (file, error) = (nil, Self.gone(transfer, place))
        }
    }

    /// Calls `body` with the file. If the app does not move the file during the call, the file is removed after the call.
    func hand(_ body: (URL?) -> Void) {
        guard let file, !isAtItsDestination else { return body(file) }
        let handed = DeliveredFile(file, in: AppRuntime.shared.directories)
        defer { handed.end() }
        body(handed.url)
    }

    /// Returns the error for a complete download whose file does not exist any more. The file was moved, or the ledger was
    /// restored from a backup.
    private static func gone(_ transfer: TransferRecord, _ place: URL?) -> URLError {
        var info: [String: Any] = [
            NSLocalizedDescriptionKey:
                "the download was complete, but the file is missing: \(place?.path ?? "the name of the file is not known")"
        ]
        if let url = URL(string: transfer.url) { info[NSURLErrorFailingURLErrorKey] = url }
        return URLError(.fileDoesNotExist, userInfo: info)
    }
}
