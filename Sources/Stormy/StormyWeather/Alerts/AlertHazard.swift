/// The kind of a hazard.
package enum AlertHazard: String, Sendable, Hashable, Codable, CaseIterable {
    // These kinds count as a storm. If the codes of a warning stand for several kinds, the kind that is first in this list is
    // used.
    case thunderstorm, wind, flood, rain, snow
    /// A weather warning whose kind is unknown, because the warning contains no code and no known word for a kind.
    case weather

    // These kinds do not count as a storm.
    case marine, coastal, heat, cold, fog, fire, avalanche, air, drought, ground, space
    /// Any other hazard, for example a closed road.
    case other

    /// `true` if a warning of this kind counts as a storm.
    package var isStorm: Bool {
        switch self {
        case .thunderstorm, .wind, .flood, .rain, .snow, .weather: true
        case .marine, .coastal, .heat, .cold, .fog, .fire, .avalanche, .air, .drought, .ground, .space, .other: false
        }
    }

    /// `true` if neither a code nor a known word shows the kind.
    var isUnclassified: Bool { self == .weather || self == .other }

    /// The name for the user, for example "snow or ice".
    package var name: String {
        switch self {
        case .thunderstorm, .wind, .flood, .rain, .fog, .fire, .heat, .drought: rawValue
        case .avalanche: "avalanches"
        case .snow: "snow or ice"
        case .weather: "other weather"
        case .marine: "at sea"
        case .coastal: "at the coast"
        case .cold: "cold or frost"
        case .air: "air quality"
        case .ground: "earthquake, volcano or landslide"
        case .space: "space weather"
        case .other: "no weather"
        }
    }
}

/// The parts of a warning that show the kind of its hazard.
struct HazardEvidence {
    /// A code with the name of its list, for example "SAME" and "TOR".
    struct Code {
        var list: String
        var value: String
    }

    /// Names of the event in words.
    var events: [String] = []
    /// The headlines of the warning. In a headline, names of places may contain words such as "coast" or "hot".
    var headlines: [String] = []
    var codes: [Code] = []
    /// MeteoAlarm's `awareness_type`, for example "3; Thunderstorm".
    var awarenessTypes: [String] = []
    /// CAP categories, for example "Met". The array is empty if the categories are unknown.
    var categories: [String] = []
    /// The codes of the areas in the system of the US National Weather Service, for example "ANZ335".
    var zones: [String] = []
    var areaNames: [String] = []
    /// `true` if the service marks the warning as a warning for the sea.
    var isForSea = false
    /// `true` if the sender is the US National Weather Service. The "Storm Warning" of this sender is for the sea.
    var isUS = false

    /// The kind of the hazard.
    ///
    /// The parts are checked in this order: areas at sea, codes, category, words, terms of unknown lists. If no part shows the
    /// kind, a weather warning has the kind ``AlertHazard/weather``. The words of a headline can show only kinds that count as a
    /// storm, because names of places contain words of other kinds.
    var hazard: AlertHazard {
        if isForSea || hasOnlySeaAreas { return .marine }
        if let coded = codedHazard { return coded }
        // Unknown categories are ignored.
        let categories = Set(categories.map { $0.lowercased() }).intersection(Self.knownCategories)
        let isWeather = categories.contains("met")
        if isWeather || categories.isEmpty {
            return named(by: { HazardWords.weather(in: $0, isUS: isUS) }) ?? (isWeather ? .weather : .other)
        }
        // Some services send floods and storms in the categories of safety and environment.
        if let named = named(by: HazardWords.other(in:)),
            !named.isStorm || !categories.isDisjoint(with: ["geo", "safety", "env", "other"])
        {
            return named
        }
        return categories.contains("fire") ? .fire : categories.contains("geo") ? .ground : .other
    }

    private func named(by kind: @escaping (String) -> AlertHazard?) -> AlertHazard? {
        events.lazy.compactMap(kind).first ?? headlines.lazy.compactMap(kind).first(where: \.isStorm) ?? termHazard
    }

    /// Source of the list: CAP 1.2.
    private static let knownCategories: Set<String> = [
        "geo", "met", "safety", "security", "rescue", "fire", "health", "env", "transport", "infra", "cbrne", "other",
    ]

    /// The maximum number of characters of ``eventName``.
    static let longestName = 80

    /// The name of the event for the user: the event, the headline, or the name of a code. If the warning has none of these
    /// names, the name is "Warning".
    var eventName: String {
        let type = awarenessTypes.lazy.flatMap { $0.split(separator: ";").dropFirst() }.map { String($0) }
        let code = codedHazard.flatMap { [.marine, .coastal, .weather, .other].contains($0) ? nil : $0.name }
        let names = (events + headlines + type + [code].compactMap { $0 }).lazy.map { $0.singleLine(limit: Self.longestName) }
        return names.first { !$0.isEmpty } ?? "Warning"
    }

    /// The maximum length of a code that is looked up, in bytes.
    private static let longestCode = 100

    private var codedHazard: AlertHazard? {
        let readers: [(Code) -> AlertHazard?] = [
            { HazardCodes.oasis($0.value) },
            { $0.list == "SAME" ? HazardCodes.same($0.value) : nil },
            { $0.list == "NationalWeatherService" ? HazardCodes.nationalWeatherService($0.value) : nil },
            { $0.list == "awareness_type" ? HazardCodes.meteoAlarm($0.value) : nil },
            { $0.list == "II" ? HazardCodes.germany($0.value) : nil },
            { HazardCodes.china($0.value) },
            { HazardCodes.hasTerms($0.list) ? HazardCodes.term($0.value, list: $0.list) : nil },
        ]
        let known = codes + awarenessTypes.map { Code(list: "awareness_type", value: $0) }
        let codes = known.filter { $0.value.utf8.count <= Self.longestCode }
        for reader in readers {
            let found = codes.compactMap(reader)
            if let hazard = AlertHazard.allCases.first(where: found.contains) { return hazard }
        }
        return nil
    }

    /// The kind of a term such as "Thunderstorm" in an unknown list of codes. Known words have priority over terms, because the
    /// unknown list may be about another subject.
    private var termHazard: AlertHazard? {
        let terms = codes.filter { code in
            !HazardCodes.hasTerms(code.list) && code.value.utf8.count <= Self.longestCode
                && !code.value.contains(where: \.isNumber)
        }
        let found = terms.compactMap { HazardCodes.term($0.value, list: $0.list) }.filter { $0 != .other }
        return AlertHazard.allCases.first(where: found.contains)
    }

    private var hasOnlySeaAreas: Bool {
        if !zones.isEmpty { return zones.allSatisfy(HazardCodes.isSeaZone) }
        let names = areaNames.flatMap { $0.split(separator: ";") }
        return !names.isEmpty && names.allSatisfy { HazardWords.isSea($0) }
    }
}
