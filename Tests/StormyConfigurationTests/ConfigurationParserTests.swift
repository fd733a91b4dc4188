import StormyConfiguration
import Testing

private func message(_ text: String) -> String? {
    do throws(ConfigurationError) {
        _ = try Configuration.parse(text: text, path: "config.toml")
        return nil
    } catch {
        return error.description
    }
}

@Suite struct ConfigurationParserTests {
    @Test func `a file with only a comment gives the defaults`() throws {
        let configuration = try Configuration.parse(text: "# nothing\n", path: "c")
        #expect(configuration == Configuration())
        #expect(configuration.weather.provider == .openMeteo)
        #expect(configuration.storm.gustsKMH == 75)
        #expect(configuration.schedule.spreadSeconds == 120)
        #expect(configuration.background.refreshBudgetSeconds == 30)
        #expect(configuration.background.processingBudgetSeconds == 600)
        #expect(configuration.background.graceSeconds == 5)
        #expect(configuration.notifications.enabled)
        #expect(configuration.upload.destination() == nil)
    }

    @Test func `the documented values are the defaults`() throws {
        let configuration = try Configuration.parse(
            text: """
                [weather]
                provider = "open-meteo"          # open-meteo | met-norway | nws | bright-sky
                contact = ""
                [storm]
                horizon_hours = 24
                thunderstorm = true
                gusts_kmh = 75
                rain_mm_per_hour = 20
                alert_severity = "severe"
                [schedule]
                spread_seconds = 120
                missed = "once"
                [background]
                refresh_budget_seconds = 30
                processing_budget_seconds = 600
                grace_seconds = 5
                [notifications]
                enabled = true
                quiet_hours = ""
                [upload]
                keep_location = false
                """, path: "c")
        var expected = Configuration()
        // The value of this line is the default value, but the line still counts as a choice of the user.
        expected.upload.keepLocation = false
        #expect(configuration == expected)
    }

    @Test func `keys in dotted, inline and named tables are read`() throws {
        let configuration = try Configuration.parse(
            text: """
                weather.provider = "nws"
                weather.contact = "me@example.org"
                weather.base_url = "http://127.0.0.1:8080"
                weather.geocoding_url = "https://mirror.example/geo"
                storm = { horizon_hours = 48, thunderstorm = false, gusts_kmh = 62.5, rain_mm_per_hour = 7, alert_severity = "off" }
                [schedule]
                spread_seconds = 0
                missed = "skip"
                [background]
                refresh_budget_seconds = 0.5
                processing_budget_seconds = 1
                grace_seconds = 0.25
                [notifications]
                enabled = false
                storms = false
                photos = false
                downloads = false
                quiet_hours = "22:00-07:00"
                quiet_passes = "none"
                [upload]
                keep_location = true
                default = "my home"
                [upload.destinations."my home"]
                kind = "webdav"
                url = "https://dav.example.org/photos/"
                user = "me"
                password = "p"
                token_file = "~/token"
                [upload.destinations.bucket]
                kind = "s3"
                url = "https://s3.example.org"
                access_key = "AK"
                secret_key_file = "/run/secret"
                region = "eu"
                bucket = "b"
                field = "f"
                limit_kbps = 500
                token = "t"
                password_file = "p"
                """, path: "c")
        #expect(configuration.weather.provider == .nws)
        #expect(configuration.weather.contact == "me@example.org")
        #expect(configuration.weather.baseURL == "http://127.0.0.1:8080")
        #expect(configuration.weather.geocodingURL == "https://mirror.example/geo")
        #expect(configuration.storm.horizonHours == 48)
        #expect(!configuration.storm.thunderstorm)
        #expect(configuration.storm.gustsKMH == 62.5)
        #expect(configuration.storm.rainMMPerHour == 7)
        #expect(configuration.storm.alertSeverity == .off)
        #expect(configuration.schedule.spreadSeconds == 0)
        #expect(configuration.schedule.missed == .skip)
        #expect(configuration.background.refreshBudgetSeconds == 0.5)
        #expect(configuration.background.graceSeconds == 0.25)
        #expect(!configuration.notifications.enabled)
        #expect(configuration.notifications.quietHours == Configuration.QuietHours(fromMinute: 1320, untilMinute: 420))
        #expect(!configuration.notifications.storms && !configuration.notifications.photos)
        #expect(!configuration.notifications.downloads && configuration.notifications.quietPasses == .none)
        #expect(configuration.upload.keepLocation == true)
        #expect(configuration.upload.destination()?.name == "my home")
        #expect(configuration.upload.destination(named: "nobody") == nil)
        var home = Configuration.Destination(kind: .webdav, url: "https://dav.example.org/photos/")
        home.user = "me"
        home.password = "p"
        home.tokenFile = "~/token"
        home.lines = configuration.upload.destinations["my home"]?.lines
        #expect(configuration.upload.destinations["my home"] == home)
        let bucket = try #require(configuration.upload.destination(named: "bucket")).destination
        #expect(bucket.kind == .s3 && bucket.accessKey == "AK" && bucket.secretKeyFile == "/run/secret" && bucket.region == "eu")
        #expect(
            bucket.bucket == "b" && bucket.field == "f" && bucket.limitKbps == 500 && bucket.token == "t"
                && bucket.passwordFile == "p")
    }

    @Test func `a port that is not a port is refused`() {
        for (key, text) in [
            ("weather.base_url", "[weather]\nbase_url = \"http://a.example:99999\""),
            ("alerts.cap_feeds", "[alerts]\ncap_feeds = [\"http://a.example:0/feed\"]"),
        ] {
            #expect(message(text)?.contains("\"\(key)\" cannot be the port") == true)
        }
    }

    @Test func `a user name with a colon is refused`() {
        let text = "[upload.destinations.a]\nkind = \"webdav\"\nurl = \"https://a.example/\"\nuser = \"a:b\""
        #expect(message(text)?.contains("config.toml:4:1: \"upload.destinations.a.user\" cannot be") == true)
    }

    @Test func `duplicate feeds are removed, and more than 20 feeds are an error`() throws {
        func feeds(_ list: String) throws -> [String] {
            try Configuration.parse(text: "[alerts]\ncap_feeds = \(list)\n[storm]\ngusts_kmh = 80", path: "c").alerts.capFeeds
        }
        #expect(try feeds("[]") == [])
        #expect(try feeds("[\n'https://a/x', \"http://b\", 'https://a/x',\n]") == ["https://a/x", "http://b"])
        #expect(throws: ConfigurationError.self) {
            try feeds("[" + (0..<21).map { "'https://a/\($0)'" }.joined(separator: ",") + "]")
        }
    }

    @Test(arguments: [
        ("[storm]\n\n  gust_kmh = 3", #"config.toml:3:3: unknown key "storm.gust_kmh"; did you mean "storm.gusts_kmh"?"#),
        ("[wether]\n", #"config.toml:1:2: unknown key "wether"; did you mean "weather"?"#),
        ("provider = 'nws'", #"config.toml:1:1: unknown key "provider"; did you mean "weather.provider"?"#),
        (
            "[schedule]\nzzzzzzzzzzzzzz = 1",
            #"config.toml:2:1: unknown key "schedule.zzzzzzzzzzzzzz"; the nearest known key is "schedule.spread_seconds""#
        ),
        (
            "[upload.destinations.home]\nkind='put'\nurl='http://a'\nlimit_kbs = 1",
            #"config.toml:4:1: unknown key "upload.destinations.home.limit_kbs"; did you mean "upload.destinations.home.limit_kbps"?"#
        ),
        ("[storm]\nb = 1\na = 1", #"config.toml:2:1: unknown key "storm.b"; the nearest known key is "storm.gusts_kmh""#),
    ])
    func `an unknown key is reported with its place and the nearest known key`(_ text: String, _ expected: String) {
        #expect(message(text) == expected)
    }

    @Test(arguments: [
        ("[storm]\ngusts_kmh = \"75\"", #"config.toml:2:1: "storm.gusts_kmh" must be a number, not a text"#),
        (
            "[storm]\nhorizon_hours = 24.5",
            #"config.toml:2:1: "storm.horizon_hours" must be a whole number, not a number with a fraction"#
        ),
        (
            "[upload.destinations.home]\nkind='put'\nurl='http://a'\nlimit_kbps = 9223372036854775807",
            #"config.toml:4:1: "upload.destinations.home.limit_kbps" cannot be 9223372036854775807; write a whole number from 1 to 100000000"#
        ),
        ("[storm]\nthunderstorm = 1", #"config.toml:2:1: "storm.thunderstorm" must be true or false, not a whole number"#),
        ("weather = 3", #"config.toml:1:1: "weather" must be a table ([weather]), not a whole number"#),
        ("[weather]\ncontact = ['a']", #"config.toml:2:1: "weather.contact" must be a text in quotes, not a list"#),
        (
            "[[upload.destinations]]\nkind='put'",
            #"config.toml:1:10: "upload.destinations" must be a table ([upload.destinations]), not a list"#
        ),
        (
            "[alerts]\ncap_feeds = 'https://a'",
            #"config.toml:2:1: "alerts.cap_feeds" must be a list of texts, ["https://…"], not a text"#
        ),
        (
            "[alerts]\ncap_feeds = ['https://a', 1]",
            #"config.toml:2:1: "alerts.cap_feeds" must be a list of texts, ["https://…"], not a list with a value that is not a text"#
        ),
        (
            "[alerts]\ncap_feeds = [['https://a']]",
            #"config.toml:2:1: "alerts.cap_feeds" must be a list of texts, ["https://…"], not a list with a value that is not a text"#
        ),
        (
            "[alerts]\ncap_feeds = ['https://a', 'ftp://b']",
            #"config.toml:2:1: "alerts.cap_feeds" cannot be one of these addresses; write http:// or https:// and a host for each address"#
        ),
        ("[weather]\nprovider = 2026-01-01", #"config.toml:2:1: "weather.provider" must be a text in quotes, not a date"#),
    ])
    func `a value of a wrong type or range is reported with its place and the expected form`(_ text: String, _ expected: String) {
        #expect(message(text) == expected)
    }

    @Test(arguments: [
        "[storm]\nhorizon_hours = 0", "[storm]\nhorizon_hours = 169", "[storm]\ngusts_kmh = 0", "[storm]\nrain_mm_per_hour = nan",
        "[storm]\nalert_severity = 'loud'", "[schedule]\nspread_seconds = -1", "[schedule]\nmissed = 'twice'",
        "[background]\nrefresh_budget_seconds = 0", "[background]\nprocessing_budget_seconds = inf",
        "[background]\ngrace_seconds = -0.1",
        "[notifications]\nquiet_hours = '22-07'", "[notifications]\nquiet_hours = '07:00-07:00'",
        "[notifications]\nquiet_hours = '24:00-07:00'",
        "[weather]\nprovider = 'open-meteoo'", "[weather]\nprovider = 'met-norway'", "[weather]\nbase_url = 'ftp://a'",
        "[weather]\ngeocoding_url = 'a.example'", "[weather]\ncontact = \"a\\r\\nX: y\"", "[upload]\ndefault = 'home'",
    ])
    func `an invalid value is reported with its line`(_ text: String) throws {
        let words = try #require(message(text))
        #expect(words.hasPrefix("config.toml:2:1: "))
        #expect(!words.contains("\n"))
    }

    @Test func `an error message contains the correction and no password`() {
        #expect(
            message("[weather]\nprovider = 'openmeteo'")
                == #"config.toml:2:1: "weather.provider" cannot be "openmeteo"; did you mean "open-meteo"? write one of open-meteo, met-norway, nws, bright-sky"#
        )
        #expect(
            message("[upload.destinations.home]\nurl = 'http://a'")?.hasPrefix(
                #"config.toml:1:22: "upload.destinations.home.kind" is missing; write kind = one of put, webdav"#) == true)
        #expect(message("[upload.destinations.home]\nkind = 'put'")?.contains("url = \"https://…\"") == true)
        #expect(message("[upload.destinations.home]\nkind = 'put'\nurl='http://u:secret@'")?.contains("secret") == false)
        #expect(
            message("[upload.destinations.home]\nkind = 'put'\nurl='http://a'\npassword='x'\npassword_file='y'")?.contains(
                "remove one of these") == true)
    }

    /// These lines make an assertion of the TOML library fail, which would end the process. The assertion does not report a
    /// position, so Stormy itself searches for the invalid line.
    @Test(arguments: [
        ("[/a]", 1), ("[[/a]]", 1), ("x = \"[/\"\n  [ =\"x\"]", 2), ("[é]", 1), ("a = [ # [\n]\n[<a]", 3),
        ("a = 'it\\'\n[<a]", 2),
        ("[\n[weather]", 1), ("[\u{487}t", 1), ("\u{FEFF}[/a]", 1), ("[storm]\n\nnds =2024-06-10T%2:00\n[weather]\n", 3),
        ("a = \"\"\"\n[/in a text]\n\"\"\"\n[/a]", 4), (String(repeating: "# a comment\n", count: 40_000) + "[/a]", 40_001),
    ])
    func `a line that cannot be parsed is reported by its number`(_ text: String, _ line: Int) {
        #expect(message(text) == "config.toml:\(line): not valid TOML: this line cannot be understood")
    }

    /// The values are nested deeper than in any real file. The parser must return an error before its stack overflows.
    @Test(arguments: ["[", "{ a = "]) func `nesting that is too deep is an error`(_ opening: String) {
        let words = message("a = " + String(repeating: opening, count: 100_000))
        #expect(words?.hasPrefix("config.toml:1:") == true && words?.contains("not valid TOML") == true)
    }

    /// The TOML library does not limit the number of parts in a dotted key.
    @Test(arguments: [("", ""), ("[", "]"), ("a = {", "}")])
    func `more than 4000 dots are an error`(_ opening: String, _ closing: String) {
        let key = String(repeating: "a.", count: 400_000) + "a"
        let text = opening + key + (opening == "[" ? "" : " = 1") + closing
        #expect(message(text) == "config.toml: not valid TOML: more than 4000 dots are in it; this is not a configuration")
        // The key follows a `#` in a string. The `#` in the string looks like the beginning of a comment.
        #expect(message("x = [\"\"\"\n#\"\"\", {\(key) = 1}]")?.contains("more than 4000 dots") == true)
        let deep = String(repeating: "a.", count: 3_990) + "a = "
        #expect(message(deep + "1")?.hasPrefix("config.toml:1:1: unknown key") == true)
        #expect(message(deep + String(repeating: "{a=", count: 31) + "1" + String(repeating: "}", count: 31)) != nil)
    }

    @Test(arguments: ["a = \"", "a = '''", "[weather", "a = \"\\u12\"", "a = 1\na = 2", "\u{1}"])
    func `text that is not TOML is an error`(_ text: String) { #expect(message(text)?.contains("not valid TOML") == true) }

    @Test(arguments: ["# [/a]\n", "[weather] # [/\n", "[ weather ]\n", "[\"weather\"]\n"])
    func `brackets in comments and table headers with spaces or quotes are accepted`(_ text: String) {
        #expect(message(text) == nil)
    }

    @Test func `a syntax error is reported with its line`() throws {
        let words = try #require(message("[weather]\nprovider = \n"))
        #expect(words.hasPrefix("config.toml:2:"))
        #expect(words.contains("not valid TOML"))
        #expect(!words.contains("\n"))
        #expect(message("a = 1\na = 2")?.hasPrefix("config.toml:2:") == true)
        #expect(message("[storm]\n\0gusts_kmh = 1")?.contains("NUL") == true)
    }

    @Test func `quiet hours may cross midnight and do not include their end`() throws {
        let night = try #require(Configuration.QuietHours(parsing: "22:00 - 7:00"))
        #expect(night.contains(minute: 22 * 60) && night.contains(minute: 0) && !night.contains(minute: 7 * 60))
        let siesta = try #require(Configuration.QuietHours(parsing: "13:00-15:30"))
        #expect(siesta.contains(minute: 13 * 60) && !siesta.contains(minute: 15 * 60 + 30) && !siesta.contains(minute: 0))
    }
}
