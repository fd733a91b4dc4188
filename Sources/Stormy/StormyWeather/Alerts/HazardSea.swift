import Foundation

/// This extension contains the words for the sea. A warning that is only for the sea does not count as a storm. A warning that
/// also contains a word for land or for a hazard on land may count as a storm.
extension HazardWords {
    /// Returns whether the name of an area names only the sea.
    ///
    /// Every part of the name must name the sea. "Grenada and its surrounding waters" also names land.
    static func isSea(_ area: some StringProtocol) -> Bool {
        let name = Name(area)
        guard seaAreas.isIn(name) else { return false }
        return parts(of: name.text, areaMarks).map { Name($0) }.allSatisfy { seaAreas.isIn($0) && !landWords.isIn($0) }
    }

    /// Returns the kind of a hazard on land in a name that also contains a word for the sea. An example is "Flash Flood Warning
    /// and Small Craft Advisory". `nil` if the name is only for the sea.
    ///
    /// Wind is also a hazard of the sea. For this reason, wind counts only if the name also contains land, a tropical cyclone or
    /// a tornado.
    static func landHazard(in name: Name) -> AlertHazard? {
        let dry = parts(of: name.text, eventMarks).map { Name($0) }.filter { !marine.isIn($0) }
        let hasLand = dry.contains { landWords.isIn($0) }
        let rest = hasLand ? name.without(marine) : Name(dry.map(\.text).joined(separator: " "))
        guard let hazard = weather(in: rest), hazard.isStorm else { return nil }
        return hazard != .wind || hasLand || cyclones.isIn(rest) ? hazard : nil
    }

    /// Returns whether a name begins like a warning for the sea of the US National Weather Service.
    ///
    /// In the United States, warnings with such names are only for the sea. Warnings on land have other names, for example "High
    /// Wind Warning".
    static func isAmericanSea(_ name: Name) -> Bool {
        ["storm w", "gale w", "hurricane force wind"].contains(where: name.text.hasPrefix)
    }

    // MARK: Parts of names

    private static let eventMarks: Set<Character> = [",", ";", "/", "&", "+", "，", "、", "؛", "،"]
    /// In the name of an area, a colon and brackets also separate places. In an event, the hazard follows a colon: "Marine
    /// warning: gale".
    private static let areaMarks = eventMarks.union([":", "(", ")"])

    private static let joiningWords: Set<Substring> = [
        "and", "plus", "including", "with", "et", "und", "sowie", "y", "e", "ed", "i", "og", "och", "oraz", "и", "та", "-", "–",
        "—",
    ]

    /// Returns the parts of a lower-case name. Parts are separated by marks and by words for "and".
    private static func parts(of text: String, _ marks: Set<Character>) -> [String] {
        text.split { marks.contains($0) }.flatMap { piece in
            piece.split(separator: " ").split { joiningWords.contains($0) }.map { $0.joined(separator: " ") }
        }
    }

    // MARK: Words

    /// Names of places on land that contain a word for the sea.
    static let placeNames = [
        "charente-maritime", "charente maritime", "seine-maritime", "seine maritime", "alpes-maritimes", "alpes maritimes",
        "maritime provinces", "maritime alps",
    ]

    private static let seaAreas = Words(
        .marine, "waters nm offshore",
        parts: "sea area, high seas, nautical mile, seegebiet, hochsee, zona marítima, zone maritime, havområde, merialue")

    static let marine = Words(
        .marine, "marine craft maritime",
        parts: """
            freezing spray, coastal waters, brisk wind, rough bar, for shipping, shipping forecast, schifffahrt, scheepvaart, sjöfart, seewetter, hochsee, küstenwarnung, aviso marítim,
            avviso marittim, 海上大风, 海上大風, 海上風, 海上強風
            """)

    private static let landWords = Words(
        .other,
        """
        land mainland inland onshore island islands isle isles village town city county counties district districts parish
        province provinces municipality state peninsula surrounding adjacent adjoining its festland insel inseln stadt landkreis
        gemeinde île îles terre terres ville commune communes département isla islas tierra ciudad provincia municipio ilha ilhas
        terra cidade isola isole città fastland fastlandet øy øya öar kommun kommune суша суше остров острова острове
        """,
        parts: "陸上, 陆上, 内陆, 內陸")

    private static let cyclones = Words(
        .wind, "ciclone ciclón huracán furacão uragano ураган тайфун смерч",
        parts: "tornado, hurricane, typhoon, cyclone, cyclon, zyklon, hurrikan, ouragan, tropical, 台风, 台風, 颱風, 颶風, 飓风, 龙卷, 龍捲, 竜巻"
    )
}
