import BackgroundLedger
import BackgroundScheduling
import Foundation

/// Examines the pending requests, and the results of their last launches.
struct RequestsExamination: Examination {
    private let check = "requests"
    /// If this number of consecutive launches for a request ended without a result, the examination reports the request as
    /// failing.
    private let patience = 3

    func findings(_ app: ExaminedApp) -> [DoctorFinding] {
        guard let books = app.books else { return [] }
        let rows = books.requests.compactMap { failing($0, books) }
        if !rows.isEmpty { return rows }
        let count = books.requests.count
        let pending = count == 1 ? "1 request is" : "\(count) requests are"
        return [
            DoctorFinding(
                check, .ok,
                count == 0 ? "No request is pending." : "\(pending) pending, and no request fails repeatedly.")
        ]
    }

    private func failing(_ request: RequestRecord, _ books: ExaminedApp.Books) -> DoctorFinding? {
        guard request.failures >= patience else { return nil }
        let last = books.lastEnds.last { $0.identifier == request.identifier }
        let reason = last.map { [$0.outcome?.rawValue, $0.detail].compactMap { $0 }.joined(separator: ", ") } ?? ""
        let next = request.backoffUntil.map { "; the next attempt is at \(Output.moment($0))" } ?? ""
        return DoctorFinding(
            check, .warning, "\(request.identifier) failed \(request.failures) times in a row (\(reason))\(next)")
    }
}
