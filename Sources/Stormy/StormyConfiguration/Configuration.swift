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
