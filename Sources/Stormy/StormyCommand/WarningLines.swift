import BackgroundCommands
import BackgroundRuntime
import Foundation
import Stormy
import StormyWeather

/// The text about the official warnings of one place: the requested services, their responses and times, or the reason why no
/// service was requested.
struct WarningLines {
    /// A source of warnings in JSON reports.
    struct Row: Encodable {
        let service: String
        let name: String
        let region: OrNull<String>
        /// One of "answered", "notRequested", "noContact", "outside" and "failed".
        let answer: String
        let warnings: Int
        let answeredAt: OrNull<Date>
        let dataTime: OrNull<Date>
        let trouble: OrNull<String>
    }

    private let place: Place
    private let coverage: WarningCoverage?
    private let answers: [WarningResult]
    private let now = AppRuntime.shared.now

    /// - Throws: the store's errors.
    init(of place: Place, in store: StormyStore) throws {
        self.place = place
        coverage = StormySettings.current.warningCoverage(of: place, failing: try store.failingServices(at: place))
        answers = try coverage.map { try store.warningAnswers($0, at: place, now: AppRuntime.shared.now) } ?? []
    }

    /// Sentences about the sources, one for each source. If there are no sources, the array contains one sentence with the
    /// reason.
    var sentences: [String] { (facts.isEmpty ? [gap] : facts).map { "Official warnings: \($0)." } }

    var rows: [Row] {
        answers.map { answer in
            Row(
                service: answer.source.service?.rawValue ?? WarningCoverage.name(ofFeed: answer.source.key),
                name: answer.source.name,
                region: OrNull(answer.source.region), answer: answer.code, warnings: answer.activeCount,
                answeredAt: OrNull(answer.answeredAt), dataTime: OrNull(answer.dataTime), trouble: OrNull(answer.trouble))
        }
    }

    /// The row about these warnings in the output of `doctor`.
    var finding: DoctorFinding {
        let hasTrouble = answers.contains { answer in
            switch answer.outcome {
            case .refused, .failed: true
            case .answered: answer.remark != nil || answer.source.service != nil && hasOldData(answer)
            case .notRequested, .notCovered: false
            }
        }
        let text = facts.isEmpty ? gap : facts.joined(separator: "; ")
        return DoctorFinding("warnings", hasTrouble ? .warning : .ok, "\(place.name): \(text).")
    }

    /// A text about the services that cannot be requested because the configuration contains no contact, with the line to add.
    /// `nil` if there are no such services.
    var missingContact: String? {
        let refused = answers.filter { $0.outcome == .refused(.noContact) }
        return refused.isEmpty ? nil : "\(place.name): " + refused.map(fact).joined(separator: "; ") + "."
    }

    private var facts: [String] { answers.map(fact) }

    private var gap: String {
        switch coverage?.gap {
        case .off: "off, because alert_severity is \"off\""
        case .noService:
            "no service that Stormy supports covers this place. To add feeds of warnings, set cap_feeds in the configuration"
        case nil: "the coordinates of this place cannot be read"
        }
    }

    private func fact(_ answer: WarningResult) -> String {
        let name = [answer.source.name, answer.source.region].compactMap { $0 }.joined(separator: ", ")
        switch answer.outcome {
        case .refused(.noContact):
            return "\(name), not requested, because the service requires a contact. "
                + "To receive these warnings, add contact = \"you@example.org\" to [weather] in \(Self.configurationFile)"
        case .notRequested: return "\(name), not requested yet"
        case .answered:
            let remark = answer.remark.map { "; some data is not used: \(Self.withoutStop($0))" } ?? ""
            let dataTime = answer.remark != nil || hasOldData(answer) ? data(answer) : ""
            return "\(name), \(warnings(answer))\(age(answer))\(remark)\(dataTime)"
        case .notCovered:
            return "\(name) does not cover this place"
                + (answer.activeCount > 0 ? "; \(warnings(answer)) from an earlier response" : "")
        case .failed(let why):
            let last = answer.answeredAt == nil ? "" : "; last response: \(warnings(answer))\(age(answer))"
            return "\(name), no usable response: \(Self.withoutStop(why))\(last)\(data(answer))"
        }
    }

    private static func withoutStop(_ text: String) -> String { text.hasSuffix(".") ? String(text.dropLast()) : text }

    private func data(_ answer: WarningResult) -> String {
        answer.dataTime.map { "; data from \(Output.relative($0, now: now))" } ?? ""
    }

    /// The number of seconds after which the data of a service is old. A feed may be older, because a feed without warnings may
    /// not change for a long time.
    private static let oldAge: Double = 86_400

    private func hasOldData(_ answer: WarningResult) -> Bool {
        // The time of Bright Sky's data can be old, because this time is requested only when a response no longer lists a
        // warning.
        guard let date = answer.dataTime, answer.source.service != .brightSky else { return false }
        return now.timeIntervalSince(date) > Self.oldAge
    }

    private func warnings(_ answer: WarningResult) -> String {
        switch answer.activeCount {
        case 0: "no warning"
        case 1: "1 warning"
        default: "\(answer.activeCount) warnings"
        }
    }

    /// Returns the age of a response. The text is empty if the response was received while the clock was ahead.
    private func age(_ answer: WarningResult) -> String {
        guard let date = answer.answeredAt, date <= now else { return "" }
        return ", \(Output.relative(date, now: now))"
    }

    private static var configurationFile: String {
        AppRuntime.shared.directories.configuration.appendingPathComponent("config.toml").path
    }
}

extension WarningResult {
    fileprivate var code: String {
        switch outcome {
        case .refused(let refusal): refusal.rawValue
        case .notRequested: "notRequested"
        case .answered: "answered"
        case .notCovered: "outside"
        case .failed: "failed"
        }
    }

    fileprivate var trouble: String? {
        if case .failed(let why) = outcome { why } else { remark }
    }
}
