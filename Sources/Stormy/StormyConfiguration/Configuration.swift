import StormyWeather

/// The content of `config.toml`. Every value has a default, so a missing file is a complete configuration.
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
    /// The weather service that is asked, and its options.
    package struct Weather: Sendable, Equatable {
        /// `provider`
        package var provider = WeatherProvider.openMeteo
        /// `contact`: an e-mail address or a web address for the User-Agent. Empty for none. The value never contains control characters.
        package var contact = ""
        /// `base_url`: an http or https address that replaces scheme, host and port of the weather service.
        package var baseURL: String?
        /// `geocoding_url`: the corresponding address for the service that looks up names.
        package var geocodingURL: String?

        /// The defaults.
        package init() {}
    }

    /// The conditions under which a forecast is a storm.
    package struct Storm: Sendable, Equatable {
        /// `horizon_hours`, 1...168.
        package var horizonHours = 24
        /// `thunderstorm`: `true` if thunderstorms count.
        package var thunderstorm = true
        /// `gusts_kmh`: the lowest gusts that count, in km/h. The value is over 0.
        package var gustsKMH = 75.0
        /// `rain_mm_per_hour`: the lowest rain that counts, in mm per hour. The value is over 0.
        package var rainMMPerHour = 20.0
        /// `alert_severity`: the lowest severity that counts.
        package var alertSeverity = CAPSeverity.severe

        /// The defaults.
        package init() {}
    }

    /// Options of the daily check's time.
    package struct Schedule: Sendable, Equatable {
        /// The behavior after a check was missed because the machine was off or asleep.
        package enum Missed: String, Sendable, CaseIterable {
            /// Runs a single check as soon as possible.
            case once
            /// Runs no check until the next scheduled one.
            case skip
        }

        /// `spread_seconds`: the maximum of this installation's constant delay, in seconds, 0...86400.
        package var spreadSeconds = 120.0
        /// `missed`
        package var missed = Missed.once

        /// The defaults.
        package init() {}
    }

    /// Feeds of official warnings, in addition to the warnings of the services.
    package struct Alerts: Sendable, Equatable {
        /// `cap_feeds`: Atom or RSS feeds of CAP 1.2, at most 20.
        package var capFeeds: [String] = []

        /// The defaults.
        package init() {}
    }

    /// The time limits of a launch.
    package struct Background: Sendable, Equatable {
        /// `refresh_budget_seconds`: over 0, at most 86400.
        package var refreshBudgetSeconds = 30.0
        /// `processing_budget_seconds`: over 0, at most 86400.
        package var processingBudgetSeconds = 600.0
        /// `grace_seconds`: the seconds between the expiration and the kill, 0...3600.
        package var graceSeconds = 5.0

        /// The defaults.
        package init() {}
    }

    /// The notifications that are shown, and the hours without notifications.
    package struct Notifications: Sendable, Equatable {
        /// `enabled`
        package var enabled = true
        /// `quiet_hours`. `nil` if the value is empty.
        package var quietHours: QuietHours?
        /// The notifications that are also shown in quiet hours.
        package enum QuietPass: String, Sendable, CaseIterable {
            /// Extreme storms.
            case extreme
            /// Every storm.
            case storms
            /// No notification.
            case none
        }
        /// `quiet_passes`
        package var quietPasses = QuietPass.extreme
        /// `storms`: `true` if notifications about storms are shown.
        package var storms = true
        /// `photos`: `true` if notifications about the ends of uploads are shown.
        package var photos = true
        /// `downloads`: `true` if notifications about the ends of downloads are shown.
        package var downloads = true

        /// The defaults.
        package init() {}
    }

    /// A daily period of local time. The period includes midnight if its end is before its beginning.
    package struct QuietHours: Sendable, Equatable {
        /// The beginning in minutes after local midnight, 0...1439.
        package var fromMinute: Int
        /// The end in minutes after local midnight, 0...1439. Never equal to ``fromMinute``.
        package var untilMinute: Int

        /// Creates a period from its bounds.
        package init(fromMinute: Int, untilMinute: Int) {
            self.fromMinute = fromMinute
            self.untilMinute = untilMinute
        }

        /// Parses a text such as `22:00-07:00`. `nil` if the text has another form, or if the period is empty.
        package init?(parsing text: String) {
            let halves = text.split(separator: "-", omittingEmptySubsequences: false)
            guard halves.count == 2, let from = QuietHours.minute(halves[0]), let until = QuietHours.minute(halves[1]),
                from != until
            else { return nil }
            self.init(fromMinute: from, untilMinute: until)
        }

        /// Returns whether a minute after local midnight is in the period.
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
    /// A usable configuration file with every key, its default and its meaning. Lines that begin with `#:` are examples, and become part of
    /// the file if the mark is removed.
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
