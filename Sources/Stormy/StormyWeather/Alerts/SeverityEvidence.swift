/// The reason why a service reports no danger.
package enum NoDanger: String, Sendable, Hashable, Codable {
    case past, unlikely, allClear

    /// The clause that follows the name of a warning in a text for the user.
    var words: String {
        switch self {
        case .past: "which is over according to its service"
        case .unlikely: "which is unlikely according to its service"
        case .allClear: "which reports the end of the danger"
        }
    }
}

/// The parts of a warning that show its severity.
struct SeverityEvidence {
    var name: String?
    var urgency: String?
    var certainty: String?
    var responses: [String] = []
    /// MeteoAlarm's `awareness_level`, for example "3; orange; Severe".
    var awarenessLevels: [String] = []

    var noDanger: NoDanger? {
        if urgency?.lowercased() == "past" { return .past }
        if certainty?.lowercased() == "unlikely" { return .unlikely }
        return responses.contains { $0.lowercased() == "allclear" } ? .allClear : nil
    }

    /// The severity. `nil` if the service reports no danger or sends an unknown severity.
    ///
    /// Text that is not a severity of CAP counts as severe.
    var severity: CAPSeverity? {
        if noDanger != nil { return nil }
        return named ?? awareness ?? (isUnreadable ? .severe : nil)
    }

    /// `true` if the service sends a severity that cannot be read, for example "Severo".
    var isUnreadable: Bool {
        let text = name?.lowercased() ?? ""
        return !text.isEmpty && text != "unknown" && noDanger == nil && named == nil && awareness == nil
    }

    private var named: CAPSeverity? { CAPSeverity(capName: name) }

    /// The severity for MeteoAlarm's levels 2 to 4. Level 1 is not a warning. Source of the rule: the levels of MeteoAlarm.
    private var awareness: CAPSeverity? {
        let levels: [Int: CAPSeverity] = [2: .moderate, 3: .severe, 4: .extreme]
        return awarenessLevels.lazy.compactMap { text in
            Int(text.drop { $0.isWhitespace }.prefix { $0.isASCII && $0.isNumber }).flatMap { levels[$0] }
        }.first
    }
}
