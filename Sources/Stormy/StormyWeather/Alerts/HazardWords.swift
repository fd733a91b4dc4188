import Foundation

/// Finds the kind of a hazard from the words of publishers, in about forty languages.
///
/// Sources: the event names of the US service, of MET Norway, of the DWD, of INMET and of MeteoAlarm's members.
enum HazardWords {
    /// The words that show one kind of hazard.
    struct Words {
        let hazard: AlertHazard
        /// Complete words, in lower case.
        let complete: Set<String>
        /// Parts of words. Each part is so long that it has only one meaning.
        let parts: [String]
        /// `parts` in UTF-8. A comparison of bytes takes a tenth of the time of a comparison of characters.
        private let partBytes: [[UInt8]]

        /// Creates the words from a text with blanks between words, and a text with commas between parts.
        init(_ hazard: AlertHazard, _ complete: String, parts: String) {
            self.hazard = hazard
            self.complete = Set(complete.split(whereSeparator: \.isWhitespace).map(String.init))
            let list = parts.split(separator: ",").map { $0.trimmingCharacters(in: .whitespacesAndNewlines) }
            self.parts = list.filter { !$0.isEmpty }
            partBytes = self.parts.map { Array($0.utf8) }
        }

        func isIn(_ name: Name) -> Bool {
            !complete.isDisjoint(with: name.words) || partBytes.contains { name.contains($0) }
        }
    }

    /// A name of a hazard, in lower case.
    struct Name {
        let text: String
        let words: Set<String>
        private let bytes: [UInt8]
        /// The first bytes of all parts that `bytes` may contain. With this set, most parts are excluded quickly.
        private let beginnings: Set<[UInt8]>

        init(_ name: some StringProtocol) {
            let lower = name.precomposedStringWithCanonicalMapping.lowercased()
            // In Slavic languages, "grad" means hail. In German, "Grad" means degrees.
            let line = lower.replacing(/[0-9]+\s*grad/, with: "").split(whereSeparator: \.isWhitespace).joined(separator: " ")
            text = line.contains("maritime") ? HazardWords.placeNames.reduce(line) { $0.replacing($1, with: "") } : line
            let words = text.split { !$0.isLetter }.map(String.init)
            self.words = Set(words + words.flatMap(Self.stems))
            let bytes = Array(text.utf8)
            self.bytes = bytes
            beginnings = Set(bytes.indices.map { Array(bytes[$0...].prefix(Self.beginning)) })
        }

        private static let beginning = 3

        /// The last parts of compound words for warnings, for example "warnung" in the word "Nebelwarnung".
        private static let warningEnds = [
            "warnung", "warnungen", "gefahr", "waarschuwing", "varning", "varsel", "varoitus", "riasztás", "riadó",
            "figyelmeztetés", "hoiatus", "viðvörun", "alarm",
        ]

        /// Returns the first part of a compound word. If the letter "s" joins the parts of the word, the first part without this
        /// letter is also returned.
        private static func stems(of word: String) -> [String] {
            warningEnds.filter { word.hasSuffix($0) && word.count > $0.count }.flatMap { end -> [String] in
                let stem = String(word.dropLast(end.count))
                return stem.hasSuffix("s") ? [stem, String(stem.dropLast())] : [stem]
            }
        }

        /// Returns the name without the words that show one kind of hazard.
        func without(_ known: Words) -> Name {
            let rest = known.parts.reduce(text) { $0.replacing($1, with: " ") }
            return Name(rest.split { !$0.isLetter }.filter { !known.complete.contains(String($0)) }.joined(separator: " "))
        }

        func contains(_ part: [UInt8]) -> Bool {
            let isPossible = part.count < Self.beginning || beginnings.contains(Array(part.prefix(Self.beginning)))
            guard isPossible, bytes.count >= part.count else { return false }
            return (0...bytes.count - part.count).contains { bytes[$0..<$0 + part.count].elementsEqual(part) }
        }
    }

    // MARK: Kinds of names

    /// Returns the kind of a hazard in the category "Met", or without a category. `nil` if no word is known.
    ///
    /// - Parameter isUS: `true` if the US National Weather Service is the sender.
    static func weather(in name: String, isUS: Bool) -> AlertHazard? {
        let name = Name(name)
        return isUS && isAmericanSea(name) ? .marine : weather(in: name)
    }

    static func weather(in name: Name) -> AlertHazard? {
        compound(in: name) ?? (storms + [anyStorm] + others + [lights]).first { $0.isIn(name) }?.hazard
    }

    /// Returns the kind of a hazard in another category. In these categories, the word "storm" alone is not enough.
    static func other(in name: String) -> AlertHazard? {
        let name = Name(name)
        return compound(in: name) ?? (others + storms + [lights]).first { $0.isIn(name) }?.hazard
    }

    /// Returns the kind of a name that contains a compound such as "storm surge". If the rest of the name contains a word for a
    /// storm, as in "Hurricane and storm surge", the rest determines the kind.
    private static func compound(in name: Name) -> AlertHazard? {
        guard let compound = compounds.first(where: { $0.isIn(name) }) else { return nil }
        let kinds: [Words]
        switch compound.hazard {
        case .marine: return landHazard(in: name) ?? .marine
        case .snow, .wind: return compound.hazard
        // In these kinds of hazards, the word "storm" has another meaning.
        case .space, .fire, .other: kinds = storms
        default: kinds = storms + [anyStorm]
        }
        let rest = name.without(compound)
        return kinds.first { $0.isIn(rest) }?.hazard ?? compound.hazard
    }

    /// Returns whether a name contains a word for "warning", for example "Tornado Watch" or "Unwetterwarnung".
    static func hasWordForWarning(_ name: String) -> Bool { wordsForWarning.isIn(Name(name)) }

    // MARK: Words

    private static let wordsForWarning = Words(
        .other, "",
        parts: """
            warning, watch, advisory, alert, statement, outlook, warnung, vorabinformation, vigilance, avertis, aviso, advertencia, allerta, avviso, waarschuwing,
            varning, varsel, varsling, viðvörun, varoitus, hoiatus, brīdinājum, įspėjim, ostrzeże, výstrah, varování, upozor, opozoril, figyelmeztet, riasztás,
            atenționare, предупрежд, попередж, προειδοπ, uyarı, تحذير, إنذار, هشدار, אזהרה, התראה, चेतावनी, peringatan, amaran, cảnh báo, เตือน, 警报, 警報,
            预警, 預警, 注意報, 경보, 주의보
            """)

    /// Names of hazards that contain a word of another kind, for example "magnetic storm". If several names match, the first name
    /// in the list is used.
    private static let compounds = [
        Words(
            .space, "",
            parts: """
                geomagnet, géomagn, magnetic storm, magnetsturm, space weather, weltraumwetter, solar storm, sonnensturm,
                solar flare, radiation storm, tempête solaire, tormenta solar, tempestade solar, tempesta solare, геомагнит,
                магнитная бур, магнитные бур, 地磁, 磁暴, 磁気嵐, 宇宙天気
                """),
        Words(.fire, "", parts: "firestorm, fire storm, feuersturm"),
        Words(.other, "storage", parts: "storm drain"),
        Words(
            .coastal, "surge",
            parts: """
                storm surge, storm tide, rip current, sturmflut, stormflo, stormvloed, coastal flood, coastalflood,
                coastalevent, coastal event, lakeshore flood, vagues-submersion, vagues submersion, submersion marine,
                inundación costera, inundação costeira, mareggiat, acqua alta, штормовой нагон, 高潮, 风暴潮, 風暴潮, 폭풍해일
                """),
        marine,
        Words(.cold, "chill windchill", parts: "wind chill, cold wave, coldwave"),
        Words(.heat, "", parts: "heat wave, heatwave"),
        // A tropical wave brings showers. Fronts and lows bring showers and wind.
        Words(
            .rain, "",
            parts: """
                tropical wave, easterly wave, easterlies wave, equatorial wave, kelvin wave, onda tropical, ondas tropicales, ondas tropicais, ola tropical, onde tropicale, ondes tropicales,
                vague tropicale, onda del este, ondas del este, onda de leste, ondas de leste, onde d'est, ondes d'est,
                onde d’est, ondes d’est, gelombang tropis, тропическая волна, восточная волна, восточные волны
                """),
        Words(
            .weather, "",
            parts: """
                wave of low pressure, waves of low pressure, low pressure wave, low-pressure wave, frontal wave, wave depression,
                short wave trough, short-wave trough, east coast low, west coast low, coastal low pressure, coastal trough, cold drop,
                cold core, cold-core, cold pool, onda frontal, ondas frontales, ondas frontais,
                onda de baja presión, ondas de baja presión, onda de baixa pressão, ondas de baixa pressão,
                волна низкого давления, cold front, coldfront, frente frí, frentes frí, frente fria, frentes frias, front froid, fronts froids, kaltfront, fronte fredd, koufront,
                kallfront, kaldfront, koldfront, zimny front, front chłodny, studená fronta, hidegfront, холодный фронт,
                холодного фронта, холодний фронт, 冷锋, 冷鋒, 寒冷前線
                """),
        Words(.fog, "", parts: "freezing fog, gefrierender nebel, brouillard givrant"),
        Words(
            .snow, "",
            parts: """
                winter storm, winterstorm, snowstorm, snow storm, ice storm, icestorm, snow squall, snowsquall, snow-ice,
                schneesturm, eissturm, eisregen, tempête de neige, tormenta de nieve, tormenta invernal, tempesta di neve,
                tempestade de neve, sneeuwstorm, snøstorm, snestorm, snöstorm, lumimyrsky, снежная бур, снежные бур, 暴风雪, 暴風雪,
                暴雪
                """),
        Words(
            .wind, "haboob heatburst",
            parts: """
                heat burst, dust devil, dust whirl,
                tropical depression, depresión tropical, dépression tropicale, depressão tropical, tropical disturbance,
                blowing dust, dust storm, duststorm, dust-storm, sandstorm, sand storm, sandsturm, staubsturm, tempête de sable,
                tempête de poussière, tormenta de arena, tormenta de polvo, tempestade de areia, tempesta di sabbia,
                пыльная бур, пыльные бур, песчаная бур, песчаные бур, 沙尘暴, 沙塵暴, عاصفة رملية, عاصفة ترابية, عواصف رملية,
                عواصف ترابية, סופת חול, kum fırtına, tropical storm, tormenta tropical, tempête tropicale,
                tempestade tropical, tempesta tropicale, тропический шторм
                """),
    ]

    /// The words for the kinds of hazards that count as a storm. If several kinds match, the first kind in the list is used.
    private static let storms = [
        Words(
            .thunderstorm,
            """
            hail lyn orage orages burza burze burzy burzami grad onweer bouřka bouřky bouřek búrka búrky búrok zivatar
            zivatarok nevihta nevihte oluja oluje åska torden grêle granizo grandine lightning pērkons negaiss perkūnija äike
            blitz lampo rayos raios fulmini calamarsa llamps treboada þrumur eldingar sét dông giông kulog petir град градушка
            """,
            parts: """
                thunder, t-storm, severe weather, gewitter, hagel, tormenta, trovoada, tempestade, temporal, tordenvær,
                åskväder, ukkonen, ukkos, ukonilma, furtun, grmljavin, onweersbui, perkūn, pērkon, bliksem, eldingaveður,
                bubullim, gök gürültü, yıldırım, descărcări electrice, καταιγίδ, κεραυν, гроза, грозы, гроз, грози, грозов,
                гръмотевич, грмљавин, грмеж, رعد, رعدية, רעמים, ברקים, गरज, बिजली, वज्रपात, বজ্র, ฟ้าคะนอง, 雷, 冰雹, 降ひょう, 뇌우,
                낙뢰, 우박
                """),
        Words(
            .flood, "flom flomfare crue crues piena piene baha lũ lụt tulva flóð vloed thaw",
            parts: """
                flood, hochwasser, überschwemm, überflut, ausufer, tauwetter, inond, inund, allagament, alluvion, esondazion,
                enchente, enxurrada, alagament, crecida, desbordamiento, riada, overstroming, hoogwater, wateroverlast,
                oversvøm, översväm, høye flommer, höga flöden, tulvav, üleujutus, plūdi, potvyn, powódź, powodzi, wezbrani,
                povodeň, povodně, povodn, poplav, árvíz, belvíz, πλημμύρ, наводн, паводк, паводок, половод, повінь, повен,
                поплав, taşkın, sel baskın, përmbytj, فيضان, سيول, سیل, שיטפו, שטפו, הצפה, הצפות, बाढ़, বন্যা, banjir, ngập,
                lũ quét, น้ำท่วม, น้ำหลาก, 洪, 淹水, 浸水, 氾濫, 内涝, 內澇, 水浸, 홍수, mafuriko
                """),
        Words(
            .snow,
            """
            snow snowfall winter ice icy neige neiges verglas nieve nieves nevadas hielo neve nevicate ghiaccio snø sne
            snö isglatt sneeuw ijs ijzel gladheid lumi lumisade jää jäide hó havazás hófúvás śnieg śniegu śnieżyca gołoledź
            oblodzenie sníh sněžení náledí ledovka sneh sneženie poľadovica sneg snijeg poledica žled ninsoare ninsori viscol
            polei sniegs apledojums sniegas plikledis lijundra snjór snjókoma hríð hálka tuyết neu elur theluji снег снега
            снегопад метель метели гололед гололёд гололедица гололёдица сніг снігопад хуртовина заметіль ожеледь ожеледиця
            сняг поледица лед
            """,
            parts: """
                blizzard, snowfall, formação de gelo, schnee, glätte, glatteis, freezing rain, freezing drizzle, flash freeze, black ice,
                pluie verglaçante, lluvia helada, gelicidio, ising, isbildning, halka, liukka, jäätä, ónos es, hófúv, zamieć,
                zamieci, zawieje, závěje, záveje, marznąc, zăpad, χιόν, χιον, kar yağış, yoğun kar, buzlanma, tipi fırtına,
                reshje bore, ثلوج, ثلج, جليد, برف, یخبندان, שלג, קרח, बर्फ, हिमपात, 暴雪, 大雪, 降雪, 吹雪, 着雪, 着氷, 结冰, 結冰, 冰冻, 凍雨,
                冻雨, 대설, 폭설, 빙판
                """),
        Words(
            .wind,
            """
            wind winds windy gale gales squall squalls gust gusts tornado tornados tornadoes vent vents rafale rafales vento
            venti ventos viento vientos ráfagas rachas racha vendaval galerna borrasca burrasca vind vindur kuling kulingen
            orkan böe böen wiatr wiatry wiatru wichura vichura vítr vietor vjetar vetar veter szél szélvihar tuuli tuul vėjas
            vėjo vējš vēja vânt vântului vijelie polarlow bora burja hvassviðri hvasst haize ciclone ciclón huracán furacão
            uragano tifón tifone tufão taifun bagyo bão gió upepo gaoth riħ erë angin topan ветер ветра вітер шквал шквали
            ураган смерч тайфун вятър ветар
            """,
            parts: """
                tornado, hurricane, typhoon, cyclone, cyclon, zyklon, hurrikan, polar low, windböe, windstorm, coup de vent,
                vent violent, ouragan, trombe, waterspout, windhose, windstoten, vindkast, vindby, tuulenpuus, puuska, trąb,
                silny wiatr, vichřice, víchrica, orkán, škvalas, škval, rüzgar, rüzgâr, hortum, siklon, άνεμ, ανέμ, άνεμο,
                ανεμο, رياح, إعصار, باد شدید, تندباد, רוחות, סופת טורנדו, आंधी, आँधी, चक्रवात, ঘূর্ণিঝড়, ลมแรง, ลมกระโชก,
                ไต้ฝุ่น, puting beliung, angin kencang, 大风, 大風, 台风, 台風, 颱風, 颶風, 飓风, 龙卷, 龍捲, 竜巻, 强风, 強風, 暴風, 暴风, 阵风, 陣風, 강풍,
                태풍, 토네이도
                """),
        Words(
            .rain,
            """
            rain rains rainfall showers downpour downpours monsoon pluie pluies averses lluvia lluvias aguacero aguaceros regn
            regnskur chuva chuvas chuvada pioggia piogge nubifragio rovesci deszcz deszcze deszczu ulewa ulewy opady déšť
            deště srážky lijavec dážď dažďa kiša kiše padavine oborine dež dežja naliv nalivi sade sadetta vihm vihmasadu eső
            esőzés felhőszakadás ploaie ploi precipitații aversă averse lietus liūtis liūtys reën rigning úrkoma pluja choiva
            euri xita báisteach mưa ulan hujan mvua yağmur yağış sağanak дождь дожди дождя ливень ливни дощ дощі злива зливи
            дъжд дъждове валежи киша дожд врнежи
            """,
            parts: """
                heavy rain, rainfall, starkregen, dauerregen, regen, niederschlag, skyfall, skybrudd, skybrud, kraftig regn,
                rankkasa, pluie-inondation, fortes précipitations, precipitaciones, precipitação, precipitações,
                precipitazion, wolkbreuk, neerslag, opady deszczu, intensywne opady, csapad, kuurosade, βροχ, βροχή, reshje,
                أمطار, مطر, باران, بارندگی, גשם, גשמים, वर्षा, बारिश, বৃষ্টি, ฝนตก, ฝนหนัก, 暴雨, 大雨, 豪雨, 降雨, 降水, 강우, 호우, 폭우
                """),
    ]

    /// Words for a storm of an unknown kind, and for heavy wind.
    private static let anyStorm = Words(
        .wind,
        """
        storm storms stormy stormur stoirm torm vētra audra audros myrsky myrskyt stuhi furtuna tempesta tempeste ekaitz
        dhoruba badai ribut nevreme nevrijeme neurje maltempo maltempata буря бури бурі шторм шторма невреме олуја
        """,
        parts: """
            sturm, tempête, stürm, ураганн, θύελλ, fırtına, firtina, عاصفة, عواصف, طوفان, סערה, סופה, तूफ़ान, तूफान, ঝড়,
            พายุ, 嵐
            """)

    /// Words for polar lights, which are also names of towns.
    private static let lights = Words(.space, "aurora auroras", parts: "aurora borealis, aurora australis")

    /// The words for the kinds of hazards that do not count as a storm. If several kinds match, the first kind in the list is
    /// used.
    private static let others = [
        Words(
            .heat,
            """
            heat hot hitze chaleur calor calore caldo hőség kánikula kuumus kuuma hete helle hetta hede hitte bero sħana panas
            karščiai karštis karščio karščių kaitra karsts vrućina vročina horka vedra căldură caldura жара жары жаркая зной спека спеки жега
            حر गर्मी लू
            """,
            parts: """
                wärmebelastung, hitzebelastung, hitzewelle, canicul, altas temperaturas, temperaturas altas, temperature elevate, high temperature,
                high-temperature, hittegolf, hetebølge, hetebølgje, hedebølge, värmevarning, varmebølge, värmebölj, höga temperaturer, vysoké teplot, tempo quente, toplinsk, toplotn, upał, vrućin,
                vročin, horko, horúčav, vedro, kaniku, hőhullám, karstum, kuumalaine, καύσων, καυσων, υψηλές θερμοκρασ, sıcak, vapë, nxeht, топлинн, топлотн, топлотен, горещин, گرما, حرارة, حار,
                حر شدید, גל חום, עומס חום, ताप, ร้อน, nắng nóng, 高温, 高溫, 炎热, 炎熱, 热浪, 熱浪, 酷热, 酷熱, 猛暑, 熱中症, 폭염, высокая температура,
                високи температури
                """),
        Words(
            .cold,
            """
            frost freeze cold kälte froid gel gelée gelées frío fríos helada heladas frio freddo gelo geada geadas friagem mróz
            mrozy przymrozki mráz mrazy fagy pakkanen pakkas kulde kyla köld frosti îngheț šalna šalnos šaltis sals salnas
            mraz slana vorst koude rét мороз морозы заморозки холод холода студ слана мраз
            """,
            parts: """
                low temperature, low-temperature, strenger frost, grand froid, kältewelle, bajas temperaturas,
                temperaturas bajas, ola de frío, onda de frio, declínio de temperatura, baixa temperatura, temperature basse,
                låga temperaturer, niskie temperatury, низкая температура, низкие температуры, ниски температури, παγετός,
                παγετού, ψύχος, don olay, zirai don, soğuk, برودة, صقيع, קרה, शीत, ठंड, หนาว, sương muối, 寒潮, 霜冻, 霜凍, 低温, 低溫,
                寒冷, 霜注意, 한파
                """),
        Words(
            .fog,
            """
            fog foggy nebel brouillard brouillards niebla nieblas nevoeiro neblina nebbia nebbie mist mgła mgły mlha mlhy hmla
            hmly köd sumu tåke skodde dimma tåge udu migla rūkas ceață magla boira néboa þoka sis mjegull туман туманы мъгла
            магла kabut kabus
            """,
            parts: """
                dense fog, sichtbehinderung, dichte mist, ομίχλη, ضباب, مه غلیظ, ערפל, कोहरा, কুয়াশা, หมอก, sương mù, 大雾, 大霧,
                濃霧, 浓雾, 霧, 雾, 안개
                """),
        Words(
            .fire,
            """
            fire fires wildfire wildfires bushfire feu feux incendie incendies incendio incendios incêndio incêndios incendi
            požár požáry požiar požiare požar požari pożar pożary пожар пожары пожежа brand eldning
            """,
            parts: """
                forestfire, forest fire, forest-fire, fire weather, red flag, waldbrand, feux de forêt, brandgefa,
                natuurbrand, gräsbrand, skogbrann, skogsbrand, skovbrand, metsäpalo, maastopalo, ruohikkopalo, tulekah,
                tuleoht, ugunsgrēk, gaisrų, erdőtűz, tűzgyúj, incendii, пожеж, пожарн, пожаро, orman yangın, πυρκαγ, zjarr,
                حرائق, שריפ, ไฟป่า, cháy rừng, kebakaran, 森林火, 山火, 乾燥, 산불
                """),
        Words(
            .avalanche, "aludes alud",
            parts: """
                avalanche, avalancha, lawine, lavin, valang, lumivyöry, snøskred, snjóflóð, laviin, avalanș, лавин,
                χιονοστιβάδ, çığ, 雪崩, なだれ, 눈사태
                """),
        Words(
            .air,
            "smoke smog haze jerebu ashfall ozone ozon pollen dust polvo poussière poussières polvere polveri poeira poeiras calima staub пыль toz",
            parts: """
                saharastaub, σκόνη, غبار, أتربة, אבק, 浮尘, 扬沙, air quality, airquality, air stagnation, volcanic ash, luftqualität, feinstaub, qualité de l'air,
                qualité de l’air, calidad del aire, qualidade do ar, pollution, qualità dell'aria, luftkvalitet, ilmanlaat,
                jakość powietrza, kvalita ovzduší, качество воздуха, אובך, kabut asap, ฝุ่น, 霾, 空气, 空氣, 黄砂, 황사, 미세먼지
                """),
        Words(
            .drought,
            "drought dürre trockenheit sécheresse sequía seca siccità susza sucho suchota aszály kuivuus tørke torka põud suša",
            parts: """
                low humidity, baixa umidade, baixa humidade, umidade baixa, humidade baixa, umidade relativa baixa, baja humedad, humedad baja, засух, посуха, суша, ξηρασί, kuraklık, جفاف, सूखा, ภัยแล้ง,
                hạn hán, 干旱, 乾旱, 가뭄
                """),
        Words(
            .ground, "earthquake quake séisme sismo terremoto tsunami volcano volcan volcán vulkan frana frane",
            parts: """
                volcan, landslide, mudslide, debris flow, erdbeben, erdrutsch, glissement de terrain, deslizamiento,
                deslizamento, jordskred, maanvyör, osuwisk, zosuv, klizište, plazov, földcsusz, alunecări, heyelan, deprem,
                землетряс, цунами, оползн, вулкан, زلزال, רעידת אדמה, भूकंप, भूस्खलन, แผ่นดินไหว, ดินถล่ม, longsor, gempa,
                sạt lở, 土砂, 土石流, 山体滑坡, 地震, 地质, 海啸, 海嘯, 津波, 火山, 지진, 산사태
                """),
        Words(
            .coastal,
            """
            surf wave waves swell swells tide tides coast currents seas wellen brandung golven vågor aallokko lained
            lainetus fale falowanie valovi dalgalar волны волн волнение волнения прибой хвилі вълни вълнение
            """,
            parts: """
                strong current, tidal current, ocean current, sea current, dangerous current, coastal, coster, costeir, costier, côtier, côtièr, yüksek dalga, houle, oleaje, marejada, ressaca, agitação marítima, ondas, mareas, gelombang, dünung, seegang,
                bølger, høye bølger, κυματ, κύμα, أمواج, موج, גלים, คลื่น, sóng lớn, 海浪, 巨浪, 波浪, 大浪, 너울, 풍랑
                """),
        Words(
            .other, "uv powerline closure evacuation test exercise",
            parts: "ultraviolet, uv-index, leiterseil, civil emergency, child abduction, law enforcement, power outage"),
    ]
}
