import StormyWeather

/// What `config.toml` says; every value has a default, so that a missing file is a complete configuration.
package struct Configuration: Sendable, Equatable {
    /// `[weather]`
    package var weather = Weather()
    /// `[storm]`
    package var storm = Storm()
    /// `[alerts]`
    package var alerts = Alerts()
    /// `[schedule]`
    package var schedule = Schedule()
    /// `[background]`
    package var background = Background()
    /// `[notifications]`
    package var notifications = Notifications()
    /// `[upload]`
    package var upload = Upload()

    /// The defaults.
    package init() {}
}

extension Configuration {
    /// Which weather service is asked, and how.
    package struct Weather: Sendable, Equatable {
        /// `provider`
        package var provider = WeatherProvider.openMeteo
        /// `contact`: e-mail or address for User-Agent; empty for none. Never contains control characters.
        package var contact = ""
        /// `base_url`: replaces scheme, host and port of the weather service; http or https.
        package var baseURL: String?
        /// `geocoding_url`: the same for the service that looks names up.
        package var geocodingURL: String?

        /// The defaults.
        package init() {}
    }

    /// When a forecast is a storm.
    package struct Storm: Sendable, Equatable {
        /// `horizon_hours`, 1...168.
        package var horizonHours = 24
        /// `thunderstorm`: whether one counts.
        package var thunderstorm = true
        /// `gusts_kmh`: gusts from here on count, in km/h; over 0.
        package var gustsKMH = 75.0
        /// `rain_mm_per_hour`: rain from here on counts, in mm per hour; over 0.
        package var rainMMPerHour = 20.0
        /// `alert_severity`: the least that counts.
        package var alertSeverity = CAPSeverity.severe

        /// The defaults.
        package init() {}
    }

    /// How the daily check keeps its time.
    package struct Schedule: Sendable, Equatable {
        /// What happens with checks missed while off or asleep.
        package enum Missed: String, Sendable, CaseIterable {
            /// One check, as soon as possible.
            case once
            /// None; the next one is the next.
            case skip
        }

        /// `spread_seconds`: the width of this installation's stable offset, in seconds, 0...86400.
        package var spreadSeconds = 120.0
        /// `missed`
        package var missed = Missed.once

        /// The defaults.
        package init() {}
    }

    /// Official warnings beside those of the services.
    package struct Alerts: Sendable, Equatable {
        /// `cap_feeds`: Atom or RSS feeds of CAP 1.2, at most 20.
        package var capFeeds: [String] = []

        /// The defaults.
        package init() {}
    }

    /// How long a launch may take.
    package struct Background: Sendable, Equatable {
        /// `refresh_budget_seconds`: over 0, at most 86400.
        package var refreshBudgetSeconds = 30.0
        /// `processing_budget_seconds`: over 0, at most 86400.
        package var processingBudgetSeconds = 600.0
        /// `grace_seconds`: between "expiring" and the kill, 0...3600.
        package var graceSeconds = 5.0

        /// The defaults.
        package init() {}
    }

    /// Whether and when a person is told.
    package struct Notifications: Sendable, Equatable {
        /// `enabled`
        package var enabled = true
        /// `quiet_hours`; nil when empty.
        package var quietHours: QuietHours?
        /// What is shown in quiet hours too.
        package enum QuietPass: String, Sendable, CaseIterable {
            /// Extreme storms.
            case extreme
            /// Every storm.
            case storms
            /// Nothing.
            case none
        }
        /// `quiet_passes`
        package var quietPasses = QuietPass.extreme
        /// `storms`: whether storms are told.
        package var storms = true
        /// `photos`: whether it is told how uploads ended.
        package var photos = true
        /// `downloads`: whether it is told how downloads ended.
        package var downloads = true

        /// The defaults.
        package init() {}
    }

    /// A daily span of local time; it goes over midnight when it ends before it begins.
    package struct QuietHours: Sendable, Equatable {
        /// Minutes after local midnight, 0...1439, at which quiet begins.
        package var fromMinute: Int
        /// Minutes after local midnight, 0...1439, at which quiet ends; never equal to ``fromMinute``.
        package var untilMinute: Int

        /// A span from its bounds.
        package init(fromMinute: Int, untilMinute: Int) {
            self.fromMinute = fromMinute
            self.untilMinute = untilMinute
        }

        /// Reads `22:00-07:00`; nil when it is not of that form, or the span is empty.
        package init?(parsing text: String) {
            let halves = text.split(separator: "-", omittingEmptySubsequences: false)
            guard halves.count == 2, let from = QuietHours.minute(halves[0]), let until = QuietHours.minute(halves[1]),
                from != until
            else { return nil }
            self.init(fromMinute: from, untilMinute: until)
        }

        /// Whether a minute after local midnight is quiet.
        package func contains(minute: Int) -> Bool {
            fromMinute < untilMinute
                ? (fromMinute..<untilMinute).contains(minute)
                : minute >= fromMinute || minute < untilMinute
        }

        private static func minute(_ text: Substring) -> Int? {
            let trimmed = text.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed()
            let parts = String(trimmed).split(separator: ":", omittingEmptySubsequences: false)
            guard parts.count == 2, (1...2).contains(parts[0].count), parts[1].count == 2,
                parts.joined().allSatisfy({ ("0"..."9").contains($0) }),
                let hour = Int(parts[0]), let minute = Int(parts[1]), hour < 24, minute < 60
            else { return nil }
            return hour * 60 + minute
        }
    }
}

extension Configuration {
    /// Every key with its default and what it does, as a file that can be used as it is. Lines after `#:` are examples: without that mark they
    /// are a part of the file.
    package static let template = """
        # Every line is optional: these are the defaults. Times are seconds.
        # A change counts from the next check or command on.

        [weather]
        # The service that is asked first: open-meteo, met-norway, nws (United
        # States) or bright-sky (Germany). Where it has no answer, or one of thunder
        # that nothing confirms, the next that covers the place is asked.
        provider = "open-meteo"
        # An e-mail address that services see in User-Agent. MET Norway requires
        # it: without it Stormy receives no forecasts and no official warnings of
        # MET Norway. To receive them, write: contact = "you@example.org"
        contact = ""
        # A mirror in place of all services, and of finding places by name:
        #: base_url = "https://weather.example.org"
        #: geocoding_url = "https://geocoding.example.org"

        # It is stormy when one of these holds.
        [storm]
        # Hours that are looked ahead, 1 to 168.
        horizon_hours = 24
        thunderstorm = true
        # Gusts from here on, km/h.
        gusts_kmh = 75
        # Rain from here on, mm per hour.
        rain_mm_per_hour = 20
        # Official warnings from here on: minor, moderate, severe, extreme, or off.
        # They come from the service of the place's country, where it has one.
        alert_severity = "severe"

        [alerts]
        # More of them: Atom or RSS feeds of CAP 1.2. Areas that are drawn count;
        # those known by a code alone are said, as nobody can place them.
        cap_feeds = []

        [schedule]
        # A check is up to so much after its time, always the same here: kind to
        # public services.
        spread_seconds = 120
        # A check that was missed while the machine was off: "once" (as soon as it
        # is on again) or "skip".
        missed = "once"

        # How long one launch may take: a check, held uploads, and the time between
        # the warning and the end.
        [background]
        refresh_budget_seconds = 30
        processing_budget_seconds = 600
        grace_seconds = 5

        [notifications]
        enabled = true
        # Which are shown, beside those of trouble.
        storms = true
        photos = true
        downloads = true
        # Hours without notifications: "22:00-07:00". At their end one tells of all.
        quiet_hours = ""
        # Shown all the same: "extreme" storms, all "storms", or "none".
        quiet_passes = "extreme"

        [upload]
        # Photos are sent without the location where they were taken. A destination
        # chooses with its own line "location". This line is for destinations
        # without that line, and the options --keep-location and
        # --remove-location of "stormy upload" come first:
        #: keep_location = true
        # Of several destinations the one that is meant without --to:
        #: default = "home"

        # Where photos go: a table for each place, with a name of your own behind
        # "destinations.". Every kind may have limit_kbps (kilobits per second, for
        # all its uploads together), and user and password_file, or token_file,
        # where the server asks for them.
        # Passwords stand in files of their own, readable by you alone:
        # chmod 600 ~/.config/stormy/password
        # Every kind may also have location ("keep" or "remove", the default), and
        # ca_file: the PEM file of the server's own certificate authority. For this
        # destination it replaces the authorities of the system.

        #: [upload.destinations.home]
        #: kind = "webdav"
        #: url = "https://dav.example.org/photos/"
        #: user = "me"
        #: password_file = "~/.config/stormy/password"
        #: limit_kbps = 2000
        #: location = "remove"
        #: ca_file = "~/.config/stormy/home-ca.pem"

        #: [upload.destinations.cloud]
        #: kind = "nextcloud"
        #: url = "https://cloud.example.org/remote.php/dav/files/me/Storms/"
        #: user = "me"
        #: password_file = "~/.config/stormy/app-password"

        #: [upload.destinations.library]
        #: kind = "immich"
        #: url = "https://immich.example.org"
        #: token_file = "~/.config/stormy/api-key"

        # The bucket is left out where the address's host has it.
        #: [upload.destinations.bucket]
        #: kind = "s3"
        #: url = "https://s3.eu-central-1.amazonaws.com/album/"
        #: bucket = "storms"
        #: region = "eu-central-1"
        #: access_key = "AKIA…"
        #: secret_key_file = "~/.config/stormy/secret"

        # One PUT to this folder, or to a presigned address as it stands.
        #: [upload.destinations.plain]
        #: kind = "put"
        #: url = "https://files.example.org/photos/"

        # A form, as a browser sends it; field is the name of its field.
        #: [upload.destinations.form]
        #: kind = "multipart"
        #: url = "https://forms.example.org/upload"
        #: field = "file"

        # These two go on where they were cut. The IETF's way may have {name}, the
        # photo's, in its address.
        #: [upload.destinations.tus]
        #: kind = "tus"
        #: url = "https://tus.example.org/files/"
        #: token_file = "~/.config/stormy/token"

        #: [upload.destinations.ietf]
        #: kind = "resumable"
        #: url = "https://uploads.example.org/photos/{name}"

        """
}
