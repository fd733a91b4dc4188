import Foundation

extension AlertEvent {
    /// The maximum number of seconds between two warnings whose times count as adjacent. A day ends at 23:59 for some services
    /// and at 24:00 for others.
    package static let touching: TimeInterval = 300

    /// Joins the events of services that send one message for each region, day and language.
    ///
    /// Two warnings count as one warning if they have the same hazard and severity, a common area at the place, and overlapping
    /// or adjacent times. For this reason, messages that differ only in language count as one warning. The text in the reader's
    /// language is used. If there is no such text, the English text is used, or else the text of the first message. Cancelled
    /// events are not changed.
    ///
    /// - Parameters:
    ///   - place: the coordinates for which the events were requested.
    ///   - language: the reader's language, for example "en".
    package static func joined(_ events: [AlertEvent], at place: Coordinates, language: String?) -> [AlertEvent] {
        let regions = Set(RegionCoverage(of: place).regions)
        var joined: [AlertEvent] = []
        for event in events {
            guard event.state == .standing, !event.infos.isEmpty else {
                joined.append(event)
                continue
            }
            var merged = event
            merged.infos = collapsed(merged.infos, at: place, regions, language)
            // One event may join several events that were separate before.
            while let index = joined.firstIndex(where: { other in
                other.state == .standing
                    && other.infos.contains { one in merged.infos.contains { isOne(one, $0, at: place, regions) } }
            }) {
                let other = joined.remove(at: index)
                merged.messages = Set(merged.messages + other.messages).sorted()
                merged.infos = collapsed(other.infos + merged.infos, at: place, regions, language)
            }
            joined.append(merged)
        }
        return joined
    }

    /// Joins the events of a substitute service with the events of the service that it replaces.
    ///
    /// The two services were requested for the same place, so areas are not compared. Two warnings count as one warning if they
    /// have the same hazard and severity, and overlapping or adjacent times. The text of the replaced service is used.
    package static func joined(_ own: [AlertEvent], substituteEvents: [AlertEvent]) -> [AlertEvent] {
        var joined = own
        for event in substituteEvents {
            var left = event
            left.infos = []
            for info in event.infos {
                let place = own.indices.lazy.compactMap { number in
                    own[number].infos.firstIndex { $0.isSameHazard(as: info) }.map { (event: number, info: $0) }
                }.first
                guard event.state == .standing, let place, own[place.event].state == .standing else {
                    left.infos.append(info)
                    continue
                }
                joined[place.event].messages = Set(joined[place.event].messages + event.messages).sorted()
                let same = joined[place.event].infos[place.info]
                joined[place.event].infos[place.info].from = min(same.from, info.from)
                joined[place.event].infos[place.info].until = max(same.until, info.until)
            }
            if event.infos.isEmpty || !left.infos.isEmpty { joined.append(left) }
        }
        return joined
    }

    /// Returns one `info` element for each warning, in the order of their beginnings.
    private static func collapsed(
        _ infos: [AlertInfo], at place: Coordinates, _ regions: Set<WarningRegion>, _ language: String?
    ) -> [AlertInfo] {
        var left: [AlertInfo] = []
        for info in infos.sorted(by: { $0.from < $1.from }) {
            guard let index = left.firstIndex(where: { isOne($0, info, at: place, regions) }) else {
                left.append(info)
                continue
            }
            var (one, other) = (left[index], info)
            if other.languageRank(for: language) < one.languageRank(for: language) { swap(&one, &other) }
            (one.from, one.until) = (min(one.from, other.from), max(one.until, other.until))
            one.areas += other.areas.filter { !one.areas.contains($0) }
            left[index] = one
        }
        return left
    }

    private static func isOne(_ one: AlertInfo, _ other: AlertInfo, at place: Coordinates, _ regions: Set<WarningRegion>) -> Bool
    {
        one.isSameHazard(as: other) && !marks(one, place, regions).isDisjoint(with: marks(other, place, regions))
    }

    /// A property by which two areas are compared. Two areas count as the same area if they have a common property.
    private enum Mark: Hashable {
        case region(WarningRegion), ring([Coordinates]), name(String)
        /// The service was requested for the place, and sent no area.
        case request
    }

    private static func marks(_ info: AlertInfo, _ place: Coordinates, _ regions: Set<WarningRegion>) -> Set<Mark> {
        var marks: Set<Mark> = []
        for area in info.areas where area.holds(at: place) == true {
            if area.isDrawn {
                marks.formUnion(area.polygons.map { .ring($0) })
                if !area.name.isEmpty { marks.insert(.name(area.name)) }
            } else {
                marks.formUnion(area.regions.intersection(regions).map { .region($0) })
            }
        }
        return info.contains(place) == nil ? [.request] : marks
    }
}
