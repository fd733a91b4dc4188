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
