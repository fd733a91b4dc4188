import Foundation
import Testing

@testable import StormyWeather

/// Tests words for the sea, names of places, and other words that alone do not determine the kind of a warning.
@Suite struct SeaWordTests {
    private func kind(
        _ event: String, category: String? = "Met", headline: String? = nil, codes: [(String, String)] = [],
        area: String = "Lakeside"
    ) throws -> AlertHazard {
        try HazardTests().info(event, category: category, headline: headline, codes: codes, area: area).hazard
    }

    // MARK: Areas

    @Test(arguments: [
        "Grenada and its surrounding waters", "Lake District and coastal waters", "Bahamas: islands and adjacent waters",
        "White Waters Village", "Offshore islands and mainland", "Coastal waters and Grenada", "Bahamas (offshore waters)",
        "Festland und Seegebiet", "Zone maritime et terres", "Lakeside; Sea area Shannon", "GRENADA &amp; ITS WATERS",
    ]) func `an area that also names land is not at sea`(_ area: String) throws {
        #expect(try kind("Tornado", area: area) == .wind)
    }

    @Test(arguments: [
        "Coastal waters from A to B out 20 NM", "Sea area Shannon", "Biscayne Bay waters; High seas", "Coastal waters, high seas",
        "Seegebiet Deutsche Bucht", "Zona marítima de Canarias", "Waters off Iceland and the high seas",
    ]) func `an area that names the sea alone is at sea`(_ area: String) throws {
        #expect(try kind("Tornado", area: area) == .marine)
    }

    // MARK: Events

    @Test(
        arguments: [
            ("Flash Flood Warning and Small Craft Advisory", .flood), ("Hurricane warning for land and coastal waters", .wind),
            ("Heavy rain, thunderstorm and marine warning", .thunderstorm), ("Tornado and marine warning", .wind),
            ("Cyclone warning for the coast and for shipping", .wind), ("Tropical storm - small craft", .wind),
            ("Winter storm and small craft advisory", .snow), ("Storm warning for inland and marine areas", .wind),
            ("Small Craft Advisory / Flood Watch", .flood), ("Gewitter und Schifffahrt", .thunderstorm),
            ("Coup de vent et orages, bulletin maritime", .thunderstorm), ("海上、陸上強風警報", .wind),
        ] as [(String, AlertHazard)]) func `a hazard of the land beside a word for the sea counts`(
            _ event: String, _ hazard: AlertHazard
        ) throws
    {
        #expect(try kind(event) == hazard && kind("Xyzzy", headline: event) == hazard)
        #expect(try kind(event.uppercased()) == hazard)
    }

    @Test(arguments: [
        "Special Marine Warning", "Small Craft Advisory For Winds", "Gale warning for shipping",
        "Gale and storm warning for coastal waters",
        "Marine wind warning", "Heavy freezing spray and small craft advisory", "Avis de vent fort en zone maritime",
        "Aviso marítimo: tormenta", "海上強風警報",
    ]) func `wind at sea alone does not count`(_ event: String) throws { #expect(try kind(event) == .marine) }

    @Test(
        arguments: [
            ("Vent violent en Charente-Maritime", .wind), ("Tempête en Seine-Maritime", .wind),
            ("Orages dans les Alpes-Maritimes", .thunderstorm), ("Storm in the Maritime provinces", .wind),
            ("Storm warning for Aurora", .wind), ("Extreme storm in Aurora", .wind), ("Flood in Aurora", .flood),
            ("Aurora warning", .space), ("Aurora borealis and geomagnetic storm", .space),
        ] as [(String, AlertHazard)]) func `the name of a place is not a kind`(_ headline: String, _ hazard: AlertHazard) throws
    {
        #expect(try kind("Vigilance orange", headline: headline) == (hazard.isStorm ? hazard : .weather))
        #expect(try kind(headline) == hazard)
    }

    @Test(
        arguments: [
            ("Weather Warning", "Orange weather warning for the Gold Coast"),
            ("Orange Warning", "Orange warning for Hot Springs"),
            ("Orange Warning", "Orange warning: Cold Lake"), ("Severe conditions", "Warning for Cape Coast"),
            ("Weather Warning", "Weather warning for Surf City"), ("Avis", "Avis: Fire Island, Fog Bay, Avalanche Creek"),
            ("Weather Warning", "Small Craft Harbour, Waters of Leith"),
        ]) func `the name of a place in a headline does not make a warning one that does not count`(
            _ event: String, _ headline: String
        ) throws
    {
        #expect(try kind(event, headline: headline) == .weather && kind(headline) != .weather)
        #expect(try kind(event, headline: headline + ", thunderstorm") == .thunderstorm, "a headline can add a kind that counts")
        #expect(try kind("Heat", headline: headline) == .heat)
    }

    @Test(
        arguments: [
            ("Easterly Wave", .rain), ("African Easterly Waves", .rain), ("Ondas del Este", .rain), ("Onda de Leste", .rain),
            ("Ondes d’Est", .rain), ("Восточная волна", .rain), ("Gelombang tropis", .rain), ("Kelvin wave", .rain),
            ("Wave of Low Pressure", .weather), ("Low-pressure wave", .weather), ("Frontal wave", .weather),
            ("East Coast Low", .weather), ("East Coast Low with flooding", .flood), ("Coastal trough", .weather),
            ("Onda frontal", .weather), ("Ondas de baja presión", .weather), ("Cold core low", .weather), ("Cold drop", .weather),
            ("Short wave trough", .weather), ("Heat burst", .wind), ("Dust devil", .wind), ("Current Weather Warning", .weather),
        ] as [(String, AlertHazard)]) func `a wave or a low that brings storms counts`(
            _ event: String, _ hazard: AlertHazard
        ) throws
    { #expect(try kind(event) == hazard && hazard.isStorm) }

    @Test(arguments: ["High waves", "Coastal event", "Strong currents", "Tidal current", "Dangerous currents at the coast"])
    func `waves and currents at the coast do not count`(_ event: String) throws { #expect(try kind(event) == .coastal) }

    @Test(
        arguments: [
            ("Tropical Wave", .rain), ("Onda tropical", .rain), ("Ondas tropicales", .rain),
            ("Tropical wave and thunderstorms", .thunderstorm),
            ("Dépression tropicale", .wind), ("Cold Front", .weather), ("Frente frío", .weather), ("Kaltfront", .weather),
            ("Cold front with squalls", .wind), ("Front froid avec orages", .thunderstorm), ("Холодный фронт", .weather),
        ] as [(String, AlertHazard)]) func `a tropical wave and a cold front count`(_ event: String, _ hazard: AlertHazard) throws
    {
        #expect(try kind(event) == hazard && hazard.isStorm)
    }

    @Test(arguments: [
        "Heatwave ends, severe storms follow", "Cold wave and storm", "Freezing fog and storm", "Storm surge and storm",
    ]) func `a storm beside another hazard counts`(_ headline: String) throws {
        #expect(try kind("Meteorological", headline: headline) == .wind)
    }

    @Test(
        arguments: [
            ("Karščio banga", .heat), ("Karščių banga", .heat), ("Kabus tebal", .fog), ("Jerebu", .air), ("Dust", .air),
            ("Saharan dust", .air), ("Polvo en suspensión", .air), ("Calima", .air), ("Saharastaub", .air), ("غبار", .air),
            ("Пыль", .air),
            ("Blowing dust", .wind), ("Dust storm", .wind), ("عواصف ترابية", .wind),
        ] as [(String, AlertHazard)]) func `heat, fog and dust of other languages do not count, and dust storms do`(
            _ event: String, _ hazard: AlertHazard
        ) throws
    {
        #expect(try kind(event) == hazard)
    }

    // MARK: Categories and codes

    @Test(arguments: ["", "Meteorological", "Météo", "Weather", "0"]) func `an unknown category is a missing category`(
        _ category: String
    ) throws {
        #expect(try kind("Cyclone", category: category) == .wind && kind("Fog", category: category) == .fog)
        #expect(try kind("Abcdef", category: category) == .other)
    }

    @Test func `a known category beside an unknown one decides`() throws {
        #expect(try kind("Abcdef", category: "Weather</category><category>Met") == .weather)
    }

    @Test func `a term in an unknown list of codes does not decide before words`() throws {
        for term in ["Test", "test message", "Fire", "Fog", "Marine"] {
            #expect(try kind("Hurricane", codes: [("channel", term)]) == .wind, "\(term)")
        }
        #expect(
            try kind("Xyzzy", codes: [("channel", "Test")]) == .weather && kind("Xyzzy", codes: [("id", "ICE-12")]) == .weather)
        #expect(
            try kind("Xyzzy", codes: [("type", "Fog")]) == .fog
                && kind("Xyzzy", codes: [("type", "Thunderstorm")]) == .thunderstorm)
        // If a code belongs to a known list, the code has priority over words.
        #expect(try kind("Hurricane", codes: [("GROUP", "FOG")]) == .fog)
        #expect(try kind("Hurricane", codes: [("profile:CAP-CP:Event:0.4", "testMessage")]) == .other)
    }
}
