// The app reads the capabilities of this desktop. The code must compile.
import BackgroundTasks
import Foundation

/// A settings page that shows the guarantees to the user.
struct SettingsPage: Sendable {
    let guarantees: BackgroundGuarantees

    init(guarantees: BackgroundGuarantees = .current) { self.guarantees = guarantees }

    var lines: [String] {
        guarantees.all.map { guarantee in
            let mark =
                switch guarantee.verdict {
                case .kept: "yes"
                case .keptFromNextLogin: "after the next login"
                case .notKept: "no"
                case .unknown: "?"
                }
            return "\(guarantee.name.rawValue): \(mark). \(guarantee.reason)" + (guarantee.help.map { " Try: \($0)" } ?? "")
        }
    }

    var advice: String? { guarantees.survivesLogout.isKept ? nil : guarantees.survivesLogout.help }

    var canAskByButton: Bool { guarantees.buttonsAreLive.isKept }

    /// Encodes the guarantees as JSON, for example for a bug report.
    func report() throws -> Data { try JSONEncoder().encode(guarantees) }

    func hasChanged() -> Bool { guarantees != .current }
}
