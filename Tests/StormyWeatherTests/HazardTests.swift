import Foundation
import Testing

@testable import StormyWeather

/// Tests how the kind of hazard of a warning is determined: by the codes, the category and the words of its publisher.
@Suite struct HazardTests {
    func info(
        _ event: String, category: String? = "Met", headline: String? = nil, codes: [(String, String)] = [],
        parameters: [(String, String)] = [], area: String = "Lakeside", geocodes: [(String, String)] = [],
        sender: String = "warn@met.example"
    ) throws -> AlertInfo {
        func pairs(_ name: String, _ values: [(String, String)]) -> String {
            values.map { "<\(name)><valueName>\($0.0)</valueName><value>\($0.1)</value></\(name)>" }.joined(separator: "\n")
        }
        let text = """
            <alert xmlns="urn:oasis:names:tc:emergency:cap:1.2"><identifier>a</identifier><sender>\(sender)</sender>
            <sent>2026-07-01T12:00:00Z</sent><status>Actual</status><msgType>Alert</msgType>
            <info>\(category.map { "<category>\($0)</category>" } ?? "")<event>\(event)</event><severity>Severe</severity>
            \(headline.map { "<headline>\($0)</headline>" } ?? "")\(pairs("eventCode", codes))\(pairs("parameter", parameters))
            <area><areaDesc>\(area)</areaDesc><circle>50,10 20</circle>\(pairs("geocode", geocodes))</area></info></alert>
            """
        return try #require(try CAPDocument.parse(Data(text.utf8))?.infos.first)
    }

    // MARK: Codes

    /// The name of the event is in French. A code shows that the hazard is rain.
    @Test(
        arguments: [
            ("Fortes pluies", "OET-159", .rain), ("Avis à la population", "OET-159", .rain),
            ("Hujan Lebat dan Petir", "OET-194", .thunderstorm),
            ("x", "OET-081", .flood), ("x", "OET-079", .flood), ("x", "OET-023", .snow), ("x", "OET-109", .snow),
            ("x", "OET-218", .wind),
            ("x", "OET-196", .wind), ("x", "OET-066", .wind), ("x", "OET-004", .air), ("x", "OET-098", .heat),
            ("x", "OET-082", .fog),
            ("x", "OET-091", .cold), ("x", "OET-018", .avalanche), ("x", "OET-217", .fire), ("x", "OET-189", .coastal),
            ("x", "OET-090", .marine), ("x", "OET-203", .ground), ("x", "OET-063", .drought), ("Storm", "OET-185", .space),
            ("Storm", "OET-174", .other), ("Strong winds", "oet-218", .wind),
            // If the code is not specific, or if this version does not know the code, the words determine the kind.
            ("Chuvas Intensas", "OET-216", .rain), ("Strong Wind Warning", "OET-300", .wind), ("Strong Wind", "OET-", .wind),
            ("Strong Wind", "OET-99999999999999999999", .wind), ("Aviso", "OET-000", .weather),
        ] as [(String, String, AlertHazard)]) func `a code of the OASIS list decides in every language`(
            _ event: String, _ code: String, _ hazard: AlertHazard
        ) throws
    {
        for list in ["OET:v1.2", "OET", "urn:oasis:names:tc:emergency:cap:oet"] {
            #expect(try info(event, codes: [(list, code)]).hazard == hazard, "\(list)")
        }
    }

    @Test func `every term of the OASIS list has a kind, and the unspecific ones have none`() {
        let without = (0...223).filter { HazardCodes.oasis(String(format: "OET-%03d", $0)) == nil }
        #expect(without == [0, 128, 216])
        #expect(HazardCodes.oasis("OET-224") == nil && HazardCodes.oasis("159") == nil)
    }

    @Test(
        arguments: [
            ("SAME", "TOR", .wind), ("SAME", "SVR", .thunderstorm), ("SAME", "FFW", .flood), ("SAME", "HWW", .wind),
            ("SAME", "BZW", .snow),
            ("SAME", "SMW", .marine), ("SAME", "CAE", .other), ("SAME", "LEW", .other), ("SAME", "TSW", .ground),
            ("SAME", "NWS", .weather),
            ("SAME", "SPS", .weather), ("NationalWeatherService", "SVW", .thunderstorm), ("NationalWeatherService", "LEW", .snow),
            ("NationalWeatherService", "SCY", .marine), ("NationalWeatherService", "GLW", .marine),
            ("NationalWeatherService", "SRW", .marine),
            ("NationalWeatherService", "HFW", .marine), ("NationalWeatherService", "UPY", .marine),
            ("NationalWeatherService", "DSW", .wind),
            ("NationalWeatherService", "AQA", .air), ("NationalWeatherService", "XHW", .heat),
            ("NationalWeatherService", "FWW", .fire),
            ("NationalWeatherService", "WWY", .snow), ("NationalWeatherService", "FAY", .flood),
            ("NationalWeatherService", "", .weather),
            // Codes of Germany.
            ("II", "31", .thunderstorm), ("II", "56", .wind), ("II", "66", .rain), ("II", "85", .snow), ("II", "89", .flood),
            ("II", "22", .cold), ("II", "59", .fog), ("II", "248", .heat), ("II", "58", .marine), ("II", "14", .marine),
            ("II", "98", .other),
            ("GROUP", "SNOWDRIFT", .snow), ("GROUP", "GLAZE", .snow), ("GROUP", "UV", .other), ("GROUP", "HAIL", .thunderstorm),
            // Codes of Canada, Taiwan and China.
            ("profile:CAP-CP:Event:0.4", "winterStorm", .snow), ("profile:CAP-CP:Event:0.4", "galeWind", .marine),
            ("profile:CAP-CP:Event:0.4", "airQuality", .air), ("profile:CAP-CP:Event:0.4", "tornado", .wind),
            ("profile:CAP-CP:Event:0.4", "weather", .weather), ("profile:CAP-TWP:Event:1.0", "HurricFrcWnd", .wind),
            ("x", "11B03", .rain), ("x", "11B17", .fog), ("x", "2.1.12", .weather), ("AREA_COLOR", "251 140 0", .weather),
        ] as [(String, String, AlertHazard)]) func `the codes of other publishers decide before words`(
            _ list: String, _ code: String, _ hazard: AlertHazard
        ) throws
    {
        #expect(try info("Xyzzy", codes: [(list, code)]).hazard == hazard)
        if hazard != .weather { #expect(try info("Tempête et inondation", codes: [(list, code)]).hazard == hazard) }
    }

    @Test(
        arguments: [
            ("1; Wind", .wind), ("2; snow-ice", .snow), ("3; x", .thunderstorm), ("4; fog", .fog), ("5; high-temperature", .heat),
            ("6; low-temperature", .cold), ("7; coastalevent", .coastal), ("8; forest-fire", .fire),
            ("9; avalanches", .avalanche),
            ("10; Rain", .rain), ("12; flooding", .flood), ("13; rain-flood", .rain), (" 3;Orages", .thunderstorm),
            ("99; x", .weather),
            ("", .weather), ("٣; x", .weather),
        ] as [(String, AlertHazard)]) func `the awareness type of MeteoAlarm decides before words`(
            _ type: String, _ hazard: AlertHazard
        ) throws
    {
        #expect(try info("Xyzzy", parameters: [("awareness_type", type)]).hazard == hazard)
        if hazard != .weather {
            #expect(try info("Thunder of some tongue", parameters: [("awareness_type", type)]).hazard == hazard)
        }
    }

    @Test func `the lists of codes have an order, and a kind that counts has priority within a list`() throws {
        let codes = [("SAME", "SVR"), ("OET:v1.2", "OET-081")]
        #expect(try info("x", codes: codes, parameters: [("awareness_type", "4; fog")]).hazard == .flood)
        #expect(try info("x", codes: [("SAME", "SVR")], parameters: [("awareness_type", "4; fog")]).hazard == .thunderstorm)
        #expect(try info("x", codes: [("OET:v1.2", "OET-100"), ("OET:v1.2", "OET-218")]).hazard == .wind, "high seas and wind")
        let groups = ["RAIN", "WIND", "THUNDERSTORM", "FOG"].map { ("GROUP", $0) }
        #expect(try info("x", codes: groups).hazard == .thunderstorm)
    }

    // MARK: Words

    @Test(
        arguments: [
            ("Severe Thunderstorm Warning", .thunderstorm), ("Tornado Watch", .wind), ("High Wind Warning", .wind),
            ("Wind Chill Advisory", .cold), ("Winter Storm Warning", .snow), ("Blizzard Warning", .snow),
            ("Flash Flood Warning", .flood),
            ("Excessive Heat Warning", .heat), ("Hitze bis 38 Grad", .heat), ("tuča i grad", .thunderstorm),
            ("Dust Storm Warning", .wind),
            ("Fire weather and severe thunderstorm warning", .thunderstorm), ("Storm Surge Warning", .coastal),
            ("Red Flag Fire Warning", .fire), ("STARKES GEWITTER", .thunderstorm), ("STURMBÖEN", .wind), ("STARKREGEN", .rain),
            ("FROST", .cold), ("Kuling", .wind), ("Dense Fog Advisory", .fog), ("Orages", .thunderstorm),
            ("Extreme Heat Event", .heat),
            ("Water storage warning", .other), ("Hazardous air quality event", .air), ("Training area closure", .other),
            ("Tempestade", .thunderstorm), ("Vendaval", .wind), ("Temporali", .thunderstorm), ("Burze", .thunderstorm),
            ("Onweer", .thunderstorm), ("Ukonilma", .thunderstorm), ("Bouřky", .thunderstorm), ("Zivatar", .thunderstorm),
            ("Granizo", .thunderstorm), ("Special Marine Warning", .marine), ("Severe Weather Statement", .thunderstorm),
            ("Gale", .wind), ("coastalevent", .coastal), ("Grey weather, dense FOG", .fog), ("Storm, dense fog", .wind),
            ("Hurricane and storm surge", .wind), ("Strong winds and high seas", .wind), ("Hazardous Seas Warning", .coastal),
            ("Current storm warning", .wind), ("Rip Current Statement", .coastal),
            // Names in other languages.
            ("Chuvas Intensas", .rain), ("Acumulado de Chuva", .rain), ("Onda de Calor", .heat), ("Baixa Umidade", .drought),
            ("Fortes pluies", .rain), ("Vent violent", .wind), ("Pluie-inondation", .flood), ("Neige-verglas", .snow),
            ("Vagues-submersion", .coastal), ("Grand froid", .cold), ("Canicule", .heat), ("Lluvias intensas", .rain),
            ("Nevadas", .snow),
            ("Fuertes vientos", .wind), ("Tormenta tropical", .wind), ("Polvo en suspensión: tormenta de polvo", .wind),
            ("Inundaciones", .flood), ("Piogge intense", .rain), ("Allagamenti", .flood), ("Neve", .snow), ("Forti venti", .wind),
            ("Hochwasser", .flood), ("Glatteis", .snow), ("Starkes Tauwetter", .flood), ("Waldbrandgefahr", .fire),
            ("Zware windstoten", .wind), ("Gladheid", .snow), ("Skybrud", .rain), ("Mye snø", .snow),
            ("Stormflod", .coastal), ("Åskväder", .thunderstorm), ("Översvämning", .flood), ("Rankkasade", .rain),
            ("Tulvavaroitus", .flood),
            ("Silny wiatr", .wind), ("Intensywne opady deszczu", .rain), ("Gołoledź", .snow), ("Upał", .heat),
            ("Silný vítr", .wind),
            ("Povodně", .flood), ("Silné sněžení", .snow), ("Víchrica", .wind), ("Szélvihar", .wind), ("Felhőszakadás", .rain),
            ("Árvíz", .flood), ("Vijelie", .wind), ("Ploi abundente", .rain), ("Inundații", .flood), ("Polei", .snow),
            ("Nevihte", .thunderstorm),
            ("Poplave", .flood), ("Olujni vjetar", .wind), ("Jaka kiša", .rain), ("Гроза", .thunderstorm),
            ("Сильный ветер", .wind),
            ("Ливень", .rain), ("Метель", .snow), ("Наводнение", .flood), ("Мороз", .cold), ("Злива", .rain), ("Паводок", .flood),
            ("Гръмотевична буря", .thunderstorm), ("Силен вятър", .wind), ("Ισχυροί άνεμοι", .wind), ("Έντονες βροχές", .rain),
            ("Πλημμύρα", .flood), ("Χιονόπτωση", .snow), ("Καύσωνας", .heat), ("Şiddetli rüzgâr", .wind),
            ("Kuvvetli yağış", .rain),
            ("Yoğun kar yağışı", .snow), ("Sel baskını", .flood), ("أمطار غزيرة", .rain), ("رياح قوية", .wind),
            ("عواصف رعدية", .thunderstorm),
            ("سيول", .flood), ("عاصفة رملية", .wind), ("ضباب", .fog), ("שיטפונות", .flood), ("רוחות חזקות", .wind),
            ("भारी वर्षा", .rain),
            ("बाढ़", .flood), ("Hujan Lebat", .rain), ("Banjir", .flood), ("Angin kencang", .wind), ("Mưa lớn", .rain),
            ("Ngập lụt", .flood),
            ("ฝนตกหนัก", .rain), ("น้ำท่วม", .flood), ("พายุฤดูร้อน", .wind), ("暴雨", .rain), ("大风", .wind), ("雷电", .thunderstorm),
            ("暴雪", .snow),
            ("台风", .wind), ("洪水", .flood), ("高温", .heat), ("大雾", .fog), ("寒潮", .cold), ("沙尘暴", .wind), ("暴風警報", .wind),
            ("大雨警報", .rain),
            ("暴風雪警報", .snow), ("高潮警報", .coastal), ("濃霧注意報", .fog), ("海上陸上颱風警報", .wind), ("호우경보", .rain), ("강풍주의보", .wind),
            ("폭염경보", .heat), ("Bagyo", .wind), ("Mvua kubwa", .rain), ("Mafuriko", .flood), ("Pērkona negaiss", .thunderstorm),
            ("Smarkus vėjas", .wind),
            ("Üleujutus", .flood), ("Mikil rigning", .rain), ("Gaoth láidir", .wind), ("Pluja intensa", .rain),
            ("Erë e fortë", .wind),
        ] as [(String, AlertHazard)]) func `words of many languages are known`(_ event: String, _ hazard: AlertHazard) throws
    {
        #expect(try info(event).hazard == hazard)
        #expect(try info(event.lowercased()).hazard == hazard, "in lower case")
        #expect(try info(event.decomposedStringWithCanonicalMapping).hazard == hazard, "with separate accents")
        #expect(try info("Xyzzy", headline: event).hazard == (hazard.isStorm ? hazard : .weather), "in the headline")
    }

    @Test func `a weather warning that no code and no word classifies counts`() throws {
        #expect(try info("Abcdef ghijkl").hazard == .weather && AlertHazard.weather.isStorm)
        #expect(try info("特別な気象").hazard == .weather)
        for category in [
            nil, "", "Geo", "Fire", "Health", "Env", "Transport", "Infra", "CBRNE", "Other", "Safety", "Security", "Rescue",
        ] {
            #expect(try !info("Abcdef ghijkl", category: category).hazard.isStorm, "\(category ?? "none")")
        }
    }

    /// The category and the code have priority over the word "storm".
    @Test func `a storm of another category is not a storm`() throws {
        for category in ["Other", "Met", "Geo", "Infra", "Safety", "Space", nil] {
            for event in [
                "Geomagnetic Storm", "Solar radiation storm", "Tempête géomagnétique", "Magnetischer Sturm: Magnetsturm", "地磁暴",
            ] {
                #expect(try info(event, category: category).hazard == .space, "\(event) \(category ?? "none")")
            }
        }
        for category in ["Other", "Geo", "Fire", "Infra", "Security"] {
            #expect(try !info("Storm", category: category).hazard.isStorm, "\(category)")
            #expect(try !info("Sturm", category: category).hazard.isStorm, "\(category)")
        }
        #expect(try info("Firestorm", category: "Fire").hazard == .fire && info("Firestorm").hazard == .fire)
        #expect(try info("Snow avalanche", category: "Geo").hazard == .avalanche)
        #expect(try info("Landslide after rain", category: "Geo").hazard == .ground)
        #expect(try info("Bridge closed, high wind", category: "Transport").hazard == .other)
        #expect(try info("Storm", category: "met").hazard == .wind)
        // Publishers of public warnings use these categories for weather warnings.
        #expect(try info("Flash flood", category: "Safety").hazard == .flood && info("Flood", category: "Geo").hazard == .flood)
        #expect(try info("Severe thunderstorm", category: "Env").hazard == .thunderstorm)
    }

    @Test(arguments: [
        "Dust Storm", "Duststorm warning", "Sandstorm", "Tempête de sable", "Tormenta de polvo", "Sandsturm", "沙尘暴",
        "Песчаная буря",
    ])
    func `a dust storm counts as wind`(_ event: String) throws { #expect(try info(event).hazard == .wind) }

    // MARK: At sea

    private func american(
        _ event: String, codes: [String] = [], zones: [String] = [], area: String = "Test County"
    ) throws -> AlertHazard {
        let answer: [String: Any] = [
            "features": [
                [
                    "properties": [
                        "id": "1", "event": event, "sent": "2026-07-01T12:00:00Z", "messageType": "Alert", "category": "Met",
                        "severity": "Severe", "areaDesc": area, "geocode": ["UGC": zones],
                        "eventCode": ["SAME": ["NWS"], "NationalWeatherService": codes],
                    ]
                ]
            ]
        ]
        let data = try JSONSerialization.data(withJSONObject: answer)
        return try #require(try AlertService.nws.read(data, status: 200, now: .now).messages.first?.infos.first?.hazard)
    }

    /// For a place at the coast, the US service returns these warnings without a code.
    @Test(arguments: [
        "Storm Warning", "Storm Watch", "Gale Warning", "Gale Watch", "Hurricane Force Wind Warning",
        "Hurricane Force Wind Watch",
        "Special Marine Warning", "Small Craft Advisory", "Small Craft Advisory For Winds", "Small Craft Advisory For Rough Bar",
        "Brisk Wind Advisory", "Heavy Freezing Spray Warning", "Marine Weather Statement", "STORM WARNING",
    ]) func `warnings for the sea do not count on land`(_ event: String) throws {
        #expect(try american(event) == .marine)
        #expect(try american(event, area: "Coastal waters from A to B out 20 NM; Biscayne Bay waters") == .marine)
    }

    @Test func `the zones of a warning decide if it is for the sea`() throws {
        #expect(try american("Hurricane Warning", zones: ["AMZ650", "AMZ651"]) == .marine)
        #expect(try american("Hurricane Warning", zones: ["AMZ650", "FLZ173"]) == .wind)
        #expect(try american("Tropical Storm Warning", zones: ["PMZ151"]) == .marine)
        #expect(try american("Severe Thunderstorm Warning", zones: ["PAZ054", "LAC001", "SCC019", "LEZ"]) == .thunderstorm)
        #expect(try american("Tropical Storm Warning", area: "Coastal waters from A to B") == .marine)
        #expect(try american("High Wind Warning", area: "Coastal waters from A to B; Miami-Dade") == .wind)
        #expect(try american("Storm Warning", codes: ["HWW"]) == .wind, "a code decides before words")
        #expect(try american("Gale Warning", codes: ["GLW"], zones: ["FLZ173"]) == .marine)
        let zones = [("UGC", "GMZ031"), ("SAME", "077031")]
        #expect(
            try info("Tropical Storm Warning", area: "Straits", geocodes: zones, sender: "w-nws.webmaster@noaa.gov").hazard
                == .marine)
        #expect(try info("Storm Warning", sender: "w-nws.webmaster@noaa.gov").hazard == .marine)
    }

    /// Other services use the words "storm" and "gale" also for warnings on land.
    @Test func `a storm warning of another service counts`() throws {
        #expect(try info("Storm Warning").hazard == .wind && info("Gale Warning").hazard == .wind)
        #expect(try info("Gale Warning", area: "Sea area Shannon").hazard == .marine)
        #expect(try info("Sturmwarnung", area: "Seegebiet Deutsche Bucht").hazard == .marine)
        #expect(try info("Special Marine Warning").hazard == .marine && info("Small craft advisory").hazard == .marine)
    }

    @Test(arguments: [("marine", .marine), ("land", .wind), (nil, .wind)] as [(String?, AlertHazard)])
    func `a warning of MET Norway for the sea does not count on land`(_ domain: String?, _ hazard: AlertHazard) throws {
        let properties: [String: Any] = [
            "id": "1", "event": "gale", "awareness_type": "1; Wind", "severity": "Severe", "title": "Gale, Skagerrak",
            "description": "Southwest gale force 8.", "instruction": "Stay in harbour.",
        ]
        let feature: [String: Any] = [
            "properties": properties.merging(domain.map { ["geographicDomain": $0] } ?? [:]) { $1 },
            "when": ["interval": ["2026-07-01T12:00:00Z", "2026-07-01T16:00:00Z"]],
        ]
        let data = try JSONSerialization.data(withJSONObject: ["features": [feature]])
        let found = try #require(try AlertService.metNorway.read(data, status: 200, now: .now).messages.first?.infos.first)
        #expect(
            found.hazard == hazard && found.texts?.headline == "Gale, Skagerrak" && found.texts?.instruction == "Stay in harbour."
        )
    }

    @Test func `the event code of the DWD decides before its words`() throws {
        func kind(_ code: Any, _ event: String = "STURM") throws -> AlertHazard? {
            let alert: [String: Any] = [
                "alert_id": "1", "onset": "2026-07-01T12:00:00Z", "event_de": event, "event_code": code, "category": "met",
            ]
            let data = try JSONSerialization.data(withJSONObject: ["alerts": [alert]])
            return try AlertService.brightSky.read(data, status: 200, now: .now).messages.first?.infos.first?.hazard
        }
        #expect(try kind(58) == .marine && kind(55) == .wind && kind(12_345) == .wind && kind(NSNull()) == .wind)
        #expect(try kind("x", "Unbekannt") == .weather && kind(1.5, "NEBEL") == .fog)
    }
}
