/// A value on which the storm rule depends. The raw value is its name in the JSON reports.
package enum StormValue: String, Sendable, Hashable, Codable, CaseIterable {
    case gusts
    case rain

    /// The name in messages.
    package var words: String {
        switch self {
        case .gusts: "wind gusts"
        case .rain: "amounts of rain"
        }
    }
}

/// Reads the gusts and the rain of a response. Records the values that cannot be read, because their unit is unknown or they are
/// impossibly large.
struct StormValues {
    private(set) var unreadable: Set<StormValue> = []

    mutating func gusts(_ value: Double?, _ unit: String?) -> Double? {
        recorded(.gusts, value, ServiceUnit.kilometresPerHour(value, unit))
    }

    mutating func rain(_ value: Double?, _ unit: String?) -> Double? {
        recorded(.rain, value, ServiceUnit.millimetres(value, unit))
    }

    private mutating func recorded(_ kind: StormValue, _ given: Double?, _ read: Double?) -> Double? {
        if given != nil, read == nil { unreadable.insert(kind) }
        return read
    }
}
