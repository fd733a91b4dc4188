import StormyWeather

/// The content of `config.toml`. Every value has a default value, so a configuration is also valid if the file does not exist.
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

    /// Creates a value with the default settings.
    package init() {}
}

extension Configuration {
    /// The weather service that is requested, and its options.
    package struct Weather: Sendable, Equatable {
        /// `provider`
        package var provider = WeatherProvider.openMeteo
        /// `contact`: an e-mail address or a web address for the User-Agent. The text is empty if there is no contact. The value
        /// never contains control characters.
        package var contact = ""
        /// `base_url`: an http or https address that replaces the scheme, host and port of the weather service.
        package var baseURL: String?
        /// `geocoding_url`: an address that replaces the scheme, host and port of the service that searches for places by name.
        package var geocodingURL: String?

        /// Creates a value with the default settings.
        package init() {}
    }

    /// The conditions under which a forecast is a storm.
    package struct Storm: Sendable, Equatable {
        /// `horizon_hours`, 1...168.
        package var horizonHours = 24
        /// `thunderstorm`: `true` if thunderstorms count as storms.
        package var thunderstorm = true
        /// `gusts_kmh`: the lowest gusts that count as a storm, in km/h. The value is above 0.
        package var gustsKMH = 75.0
        /// `rain_mm_per_hour`: the lowest rain that counts as a storm, in mm per hour. The value is above 0.
        package var rainMMPerHour = 20.0
        /// `alert_severity`: the lowest severity of an official warning that counts as a storm.
        package var alertSeverity = CAPSeverity.severe

        /// Creates a value with the default settings.
        package init() {}
    }

    /// The options for the time of the daily check.
    package struct Schedule: Sendable, Equatable {
        /// The behavior after a check was missed because the machine was off or asleep.
        package enum Missed: String, Sendable, CaseIterable {
            /// A single check is run as soon as possible after the missed check.
            case once
            /// No check is run before the next scheduled check.
            case skip
        }

        /// `spread_seconds`: the maximum delay of the daily check in seconds, 0...86400. Each installation has a constant delay.
        package var spreadSeconds = 120.0
        /// `missed`
        package var missed = Missed.once

        /// Creates a value with the default settings.
        package init() {}
    }

    /// Feeds of official warnings, in addition to the warnings of the services.
    package struct Alerts: Sendable, Equatable {
        /// `cap_feeds`: Atom or RSS feeds of CAP 1.2, at most 20.
        package var capFeeds: [String] = []

        /// Creates a value with the default settings.
        package init() {}
    }

    /// The time limits of a launch.
    package struct Background: Sendable, Equatable {
        /// `refresh_budget_seconds`: above 0, at most 86400.
        package var refreshBudgetSeconds = 30.0
        /// `processing_budget_seconds`: above 0, at most 86400.
        package var processingBudgetSeconds = 600.0
        /// `grace_seconds`: the number of seconds between the end of the time limit and the kill, 0...3600.
        package var graceSeconds = 5.0

        /// Creates a value with the default settings.
        package init() {}
    }

    /// The notifications that are shown, and the hours without notifications.
    package struct Notifications: Sendable, Equatable {
        /// `enabled`
        package var enabled = true
        /// `quiet_hours`. The value is `nil` if the text is empty.
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
        /// `photos`: `true` if notifications about completed and failed uploads are shown.
        package var photos = true
        /// `downloads`: `true` if notifications about completed and failed downloads are shown.
        package var downloads = true

        /// Creates a value with the default settings.
        package init() {}
    }

    /// A daily period of local time. If its end is before its beginning, the period ends on the next day.
    package struct QuietHours: Sendable, Equatable {
        /// The beginning in minutes after local midnight, 0...1439.
        package var fromMinute: Int
        /// The end in minutes after local midnight, 0...1439. The end is never equal to ``fromMinute``.
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
    /// A usable configuration file with every key, its default and its meaning. Lines that begin with `#:` are examples. An
    /// example becomes a valid line if `#:` is removed.
    package static let template = """
        # Every line is optional, and these lines show the defaults. Times are in
        # seconds. A change takes effect with the next check or command.

        [weather]
        # The weather service that is used first: open-meteo, met-norway, nws
        # (United States) or bright-sky (Germany). If the service does not respond,
        # or if nothing confirms its forecast of thunder, the next service that
        # covers the place is used.
        provider = "open-meteo"
        # An e-mail address that is sent to the services in the User-Agent. MET
        # Norway requires this address. Without the address, Stormy receives no
        # forecasts and no official warnings of MET Norway.
        # Example: contact = "you@example.org"
        contact = ""
        # Your own servers, which replace all weather services and the service that
        # finds places by name:
        #: base_url = "https://weather.example.org"
        #: geocoding_url = "https://geocoding.example.org"

        # A storm is expected if the forecast meets at least one of these
        # conditions.
        [storm]
        # The number of hours that are checked, from now: 1 to 168.
        horizon_hours = 24
        thunderstorm = true
        # The minimum speed of gusts, in km/h.
        gusts_kmh = 75
        # The minimum amount of rain, in mm per hour.
        rain_mm_per_hour = 20
        # The minimum severity of official warnings: minor, moderate, severe,
        # extreme, or off. The warnings come from the warning service of the
        # country of the place, if the country has a service.
        alert_severity = "severe"

        [alerts]
        # The addresses of more official warnings: Atom or RSS feeds of CAP 1.2. A
        # warning is used if its area is a polygon or a circle. A warning whose area
        # is only a code is reported, because its area is not known.
        cap_feeds = []

        [schedule]
        # The maximum delay of a check. Each installation has its own constant
        # delay, so that not all users send requests at the same time.
        spread_seconds = 120
        # What happens to a check that was missed while the machine was off:
        # "once" (the check runs when the machine is on again) or "skip" (the
        # check does not run).
        missed = "once"

        # The time limit of a check, the time limit of a launch for photos that
        # waited for charging, and the time in which a process has to end after its
        # time limit.
        [background]
        refresh_budget_seconds = 30
        processing_budget_seconds = 600
        grace_seconds = 5

        [notifications]
        enabled = true
        # The notifications to show. Problems are always shown.
        storms = true
        photos = true
        downloads = true
        # Hours without notifications, for example "22:00-07:00". A single summary
        # is shown when these hours end.
        quiet_hours = ""
        # The storms that are shown even in the quiet hours: "extreme", all
        # "storms" or "none".
        quiet_passes = "extreme"

        [upload]
        # Photos are uploaded without the location where they were taken. To keep
        # the location, write this line, or location = "keep" for a single
        # destination. The options --keep-location and --remove-location of
        # "stormy upload" have priority over these lines.
        #: keep_location = true
        # The destination that "stormy upload" uses without the option --to:
        #: default = "home"

        # The destinations of photos. Each destination is a table, and you choose
        # its name after "destinations.". Every kind may have these lines:
        #   limit_kbps     the maximum speed of all uploads together, in
        #                  kilobits per second
        #   user and password_file, or token_file, if the server requires them
        #   location       "remove" (the default) or "keep"
        #   path           folders for the photos, for example "{year}/{month}/"
        #                  with the date of each photo (webdav, nextcloud, put, s3)
        #   ca_file        a PEM file with the server's own certificate authority,
        #                  which replaces the authorities of the system
        # Each password is in a separate file that only you can read:
        # chmod 600 ~/.config/stormy/password

        #: [upload.destinations.home]
        #: kind = "webdav"
        #: url = "https://dav.example.org/photos/"
        #: user = "me"
        #: password_file = "~/.config/stormy/password"
        #: limit_kbps = 2000
        #: location = "remove"
        #: path = "{year}/{month}/"
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

        # Omit the line "bucket" if the host name contains the bucket.
        #: [upload.destinations.bucket]
        #: kind = "s3"
        #: url = "https://s3.eu-central-1.amazonaws.com/album/"
        #: bucket = "storms"
        #: region = "eu-central-1"
        #: access_key = "AKIA…"
        #: secret_key_file = "~/.config/stormy/secret"

        # The photo is sent with one PUT request, to this folder or to a presigned
        # address.
        #: [upload.destinations.plain]
        #: kind = "put"
        #: url = "https://files.example.org/photos/"

        # The photo is sent in a form, like the forms that a browser sends. "field"
        # is the name of the file field.
        #: [upload.destinations.form]
        #: kind = "multipart"
        #: url = "https://forms.example.org/upload"
        #: field = "file"

        # Interrupted uploads of these two kinds continue with the missing bytes. In
        # the address of "resumable", {name} is replaced by the name of the photo.
        #: [upload.destinations.tus]
        #: kind = "tus"
        #: url = "https://tus.example.org/files/"
        #: token_file = "~/.config/stormy/token"

        #: [upload.destinations.ietf]
        #: kind = "resumable"
        #: url = "https://uploads.example.org/photos/{name}"

        """
}
