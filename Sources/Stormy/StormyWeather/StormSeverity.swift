/// The severity of a storm, which is the severity of its worst reason.
///
/// Source of the values: the warning levels of the Deutscher Wetterdienst. `severe` is level 3 (gusts of 105 km/h, 25 mm of rain
/// in an hour). `extreme` is level 4 (gusts of 140 km/h, 40 mm of rain in an hour).
package enum StormSeverity: Int, Sendable, Comparable {
    case moderate
    case severe
    case extreme

    /// Creates the severity of a storm: the highest severity of its reasons.
    package init(_ reasons: [StormReason]) { self = reasons.map(Self.init).max() ?? .moderate }

    private init(_ reason: StormReason) {
        let (severe, extreme): (Double, Double) =
            switch reason.kind {
            // The severity of a warning, 1 to 4.
            case .alert: (3, 4)
            case .gusts: (105, 140)
            case .rain: (25, 40)
            // A weather code gives the kind of weather, but not its severity.
            case .thunderstorm: (.infinity, .infinity)
            }
        self = reason.peak >= extreme ? .extreme : reason.peak >= severe ? .severe : .moderate
    }

    package static func < (one: StormSeverity, other: StormSeverity) -> Bool { one.rawValue < other.rawValue }
}
