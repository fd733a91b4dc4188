// How an app asks what this desktop keeps. That it compiles is the test.
import BackgroundTasks
import Foundation

/// A page of settings that says what a person can count on.
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

    /// To another process, or into a report of a fault.
    func report() throws -> Data { try JSONEncoder().encode(guarantees) }

    func hasChanged() -> Bool { guarantees != .current }
}
