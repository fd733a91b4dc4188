import BackgroundLedger
import BackgroundScheduling
import Foundation

/// What is to be woken, and how the last wakes ended.
struct RequestsExamination: Examination {
    private let check = "requests"
    /// Launches without a result after which it is no accident any more.
    private let patience = 3

    func findings(_ app: ExaminedApp) -> [DoctorFinding] {
        guard let books = app.books else { return [] }
        let rows = books.requests.compactMap { failing($0, books) }
        if !rows.isEmpty { return rows }
        let count = books.requests.count
        return [DoctorFinding(check, .ok, count == 0 ? "None is pending." : "\(count) pending; none fails again and again.")]
    }

    private func failing(_ request: RequestRecord, _ books: ExaminedApp.Books) -> DoctorFinding? {
        guard request.failures >= patience else { return nil }
        let last = books.lastEnds.last { $0.identifier == request.identifier }
        let reason = last.map { [$0.outcome?.rawValue, $0.detail].compactMap { $0 }.joined(separator: ", ") } ?? ""
        let next = request.backoffUntil.map { "; tried again at \(Output.moment($0))" } ?? ""
        return DoctorFinding(
            check, .warning, "\(request.identifier) was launched \(request.failures) times without a result (\(reason))\(next)")
    }
}
