import Foundation

/// A message of an official warning, as the Common Alerting Protocol 1.2 defines it. JSON responses of services are converted to
/// this type.
package struct AlertMessage: Sendable, Equatable, Codable {
    package enum Kind: String, Sendable, Codable { case alert, update, cancel }

    package var identifier: String
    package var sent: Date
    package var kind: Kind
    /// The identifiers of the messages that this message replaces or cancels.
    package var references: [String]
    /// The `info` elements of the message, one element for each language, hazard or time.
    package var infos: [AlertInfo]
    /// The sender in a CAP document. `nil` if the service does not send the sender.
    package var sender: String?
    /// The address of the document that contains the message, if a feed links to it.
    package var link: String?
    /// The identifier of the message that the document at ``link`` contains now. `nil` if the document contains this message.
    package var replacedBy: String?
    /// `true` if the message has more `info` elements than ``CAPDocument/mostInfos``. The least severe elements are not used.
    package var hasTooManyInfos: Bool?
    /// `true` if the times have no offset from UTC. For such times, the beginning is the earliest time and the end is the latest
    /// time that the text may mean in any time zone.
    package var hasNoOffset: Bool?
    /// The earliest time that ``sent`` may mean, if its text has no offset from UTC. `nil` if the time is exact.
    package var earliestSent: Date?
    /// `true` if the areas are not used, because they have more corners than ``CAPDocument/mostCorners``.
    private(set) package var hasTooManyCorners: Bool?

    package init(identifier: String, sent: Date, kind: Kind = .alert, references: [String] = [], infos: [AlertInfo] = []) {
        (self.identifier, self.sent, self.kind) = (identifier, sent, kind)
        (self.references, self.infos) = (references, infos)
    }

    /// The number of corners of all polygons.
    package var cornerCount: Int {
        infos.reduce(0) { sum, info in info.areas.reduce(sum) { sum, area in area.polygons.reduce(sum) { $0 + $1.count } } }
    }

    mutating func removeAreas() {
        hasTooManyCorners = true
        for index in infos.indices { infos[index].areas = [] }
    }
}

/// An `info` element of a message.
package struct AlertInfo: Sendable, Equatable, Codable {
    /// The language in the form of RFC 3066, for example "en-US". `nil` if the service does not send the language.
    package var language: String?
    /// The service's name for the event, for example "Severe Thunderstorm Warning".
    package var event: String
    package var hazard: AlertHazard
    /// The severity. `nil` if the service does not send the severity, or if the severity cannot be read.
    package var severity: CAPSeverity?
    /// The beginning, which is the onset of the hazard, or else the time at which the message becomes effective.
    package var from: Date
    /// The end, which is the end of the hazard, or else the time at which the message expires.
    package var until: Date
    /// `true` if the service sends no end of the hazard. Such a warning ends when the service cancels the warning, or stops
    /// listing the warning. ``until`` is then a time that Stormy assumed.
    package var hasOpenEnd: Bool?
    /// The service that issued the warning, for example "Deutscher Wetterdienst".
    package var issuer: String
    package var areas: [AlertArea]
    /// The texts of the warning. `nil` if the service sends no texts.
    package var texts: AlertTexts?
    /// The reason why the service reports no danger. `nil` if the service reports a danger.
    package var noDanger: NoDanger?
    /// The parts of this element that Stormy cannot use unchanged, without duplicates. `nil` if all parts are used unchanged.
    package var doubts: [AlertDoubt]?

    /// - Parameters:
    ///   - until: the end. If the end is before the beginning, the hazard ended at this end. An end that is too far in the future
    ///     is not used.
    ///   - sent: the time when the message was sent. If a hazard began long before this time, the assumed end is counted from
    ///     this time. `nil` if the service does not send this time.
    package init(
        language: String? = nil, event: String, hazard: AlertHazard, severity: CAPSeverity?, from: Date, until: Date,
        hasOpenEnd: Bool = false, sent: Date? = nil, issuer: String, areas: [AlertArea], texts: AlertTexts? = nil
    ) {
        (self.language, self.event, self.hazard, self.severity) = (language, event, hazard, severity)
        let start = max(from, sent ?? from)
        let isTooFar = until > start.addingTimeInterval(Self.longestDuration)
        let end = isTooFar ? start.addingTimeInterval(Self.assumedDuration) : until
        (self.from, self.until) = (min(from, end), end)
        // `false` is stored as `nil`, so that the field is left out.
        self.hasOpenEnd = hasOpenEnd || isTooFar ? true : nil
        (self.issuer, self.areas, self.texts) = (issuer, areas, texts)
        if isTooFar { doubt(.end) }
    }

    /// The maximum duration of a hazard in seconds, which is a hundred days. Floods of large rivers last two or three months, so
    /// a later end is an error.
    static let longestDuration: TimeInterval = 100 * 86_400
    /// The number of seconds that a warning is assumed to last if its end is too far in the future. The warning stays in force
    /// while its feed lists it.
    private static let assumedDuration: TimeInterval = 10 * 86_400

    /// Returns whether the areas contain a place. `nil` if no area can be compared with a place.
    package func contains(_ place: Coordinates) -> Bool? {
        let answers = areas.compactMap { $0.holds(at: place) }
        return answers.isEmpty ? nil : answers.contains(true)
    }

    /// Returns the rank of the language of a text: 0 for the user's language, 1 for English, 2 if the language is unknown, 3 for
    /// other languages. CAP 1.2 defines that a text without a language is in English, but some services omit the language of
    /// other texts as well.
    func languageRank(for reader: String?) -> Int {
        guard let language = language?.lowercased(), !language.isEmpty else { return 2 }
        let primary = language.prefix { $0 != "-" && $0 != "_" }
        if let reader, primary == reader.lowercased() { return 0 }
        return primary == "en" ? 1 : 3
    }
}

extension CAPSeverity {
    /// Reads a severity of CAP in upper or lower case. `nil` if the severity is unknown or not a severity of CAP.
    init?(capName text: String?) {
        guard let text, let severity = CAPSeverity(rawValue: text.lowercased()), severity != .off else { return nil }
        self = severity
    }

    /// The rank of the severity, 1...4. The rank of `off` is higher than all other ranks.
    package var rank: Int { (CAPSeverity.allCases.firstIndex(of: self) ?? 0) + 1 }
}

// The next members are about warnings whose areas cannot be compared with a place.

extension AlertMessage {
    /// The areas of a warning that cannot be compared with a place: all areas, or some areas.
    package enum Unplaced: Sendable, Equatable { case all, some }

    /// Returns which areas of a relevant warning cannot be compared with a place. `nil` if all areas can be compared, or if
    /// another area contains the place. If another area contains the place, the warning is shown because of this area.
    ///
    /// Unreadable shapes and areas with too many corners are not included, because they are reported with separate sentences.
    ///
    /// - Parameters:
    ///   - place: the place that these areas may contain.
    ///   - least: the lowest severity at which a warning is relevant.
    package func unplaced(at place: Coordinates?, least: CAPSeverity, now: Date) -> Unplaced? {
        if kind == .cancel || hasTooManyCorners == true || hasUnreadableShapes { return nil }
        let counting = infos.filter { info in
            (info.severity?.rank ?? 0) >= least.rank && (info.until > now || info.hasOpenEnd == true)
        }
        if let place, counting.contains(where: { $0.contains(place) == true }) { return nil }
        guard counting.contains(where: { $0.areas.isEmpty || $0.areas.contains(where: \.isIncomplete) }) else { return nil }
        return counting.contains { $0.areas.contains(where: \.isPlaceable) } ? .some : .all
    }

    /// `true` if no area can be compared with a place. In such a message, no area has a polygon or a circle, and no code is in
    /// the region table.
    package var isCodedOnly: Bool { !infos.isEmpty && infos.allSatisfy { !$0.areas.contains(where: \.isPlaceable) } }

    /// `true` if a polygon or a circle of an area could not be read, or if all shapes of an area are lines or points.
    package var hasUnreadableShapes: Bool { infos.contains { $0.areas.contains(where: \.hasUnreadableShape) } }

    /// The codes of areas without a polygon or a circle, if the region table does not contain these codes. The codes are in the
    /// order of the message, without duplicates.
    package var unknownCodes: [RegionCode] {
        var found: Set<RegionCode> = []
        return infos.flatMap { $0.areas.flatMap(\.unknownCodes) }.filter { found.insert($0).inserted }
    }
}

extension AlertMessage {
    /// Returns whether this message is an older version of a known message from the same document. For example, a cache may send
    /// an older version.
    ///
    /// A message with another identifier counts as newer, unless the known message refers to this message. If the time of a
    /// message is in the future, the message came from a wrong clock, and is not compared.
    package func isOlderVersion(of known: AlertMessage, now: Date) -> Bool {
        // A difference of one second is ignored, because services round their times.
        let isOlder = sent + 1 < known.sent && known.sent <= now
        return isOlder && (identifier == known.identifier || known.references.contains(identifier))
    }

    /// Returns whether the message applies to a place. If the areas of a message cannot be compared with a place, the message
    /// applies, because the service was requested for this place.
    func isMeant(at place: Coordinates?) -> Bool {
        guard let place else { return true }
        let answers = infos.map { $0.contains(place) }
        return answers.allSatisfy { $0 == nil } || answers.contains(true)
    }

    /// The values that are equal in all translations of one `info` element.
    private struct TranslationKey: Hashable {
        let severity: CAPSeverity?
        let from, until: Date
        let noDanger: NoDanger?
        var hazard: AlertHazard?

        init(_ info: AlertInfo, hazard: AlertHazard? = nil) {
            (severity, from, until, noDanger) = (info.severity, info.from, info.until, info.noDanger)
            self.hazard = hazard
        }
    }

    /// Returns the `info` elements for a place. For each hazard, severity and time, the elements of only one language are
    /// returned.
    func infos(at place: Coordinates?, language: String?) -> [AlertInfo] {
        let meant = Self.classified(infos.filter { info in place.map { info.contains($0) ?? true } ?? true })
        let translations = Dictionary(grouping: meant) { TranslationKey($0, hazard: $0.hazard) }
        let best = translations.mapValues { texts in
            texts.min { $0.languageRank(for: language) < $1.languageRank(for: language) }?.language
        }
        return meant.filter { best[TranslationKey($0, hazard: $0.hazard)] == .some($0.language) }
    }

    /// If the text of an `info` element contains no known words, copies the kind of the hazard from a translation of this
    /// element.
    private static func classified(_ infos: [AlertInfo]) -> [AlertInfo] {
        let known = Dictionary(grouping: infos.filter { !$0.hazard.isUnclassified }) { TranslationKey($0) }
        return infos.map { info in
            guard info.hazard.isUnclassified, let others = known[TranslationKey(info)], let hazard = others.first?.hazard,
                others.allSatisfy({ $0.hazard == hazard && $0.language != info.language })
            else { return info }
            var info = info
            info.hazard = hazard
            return info
        }
    }
}

extension AlertInfo {
    /// Returns whether two elements have the same hazard and severity, and their times overlap or touch. The result is `false`
    /// for a warning and the all-clear message that ends the warning.
    func isSameHazard(as other: AlertInfo) -> Bool {
        hazard == other.hazard && severity == other.severity && noDanger == other.noDanger
            && from.timeIntervalSince(other.until) <= AlertEvent.touching
            && other.from.timeIntervalSince(until) <= AlertEvent.touching
    }

    mutating func add(_ evidence: SeverityEvidence) {
        (severity, noDanger) = (evidence.severity, evidence.noDanger)
        if evidence.isUnreadable { doubt(.severity) }
    }
}
