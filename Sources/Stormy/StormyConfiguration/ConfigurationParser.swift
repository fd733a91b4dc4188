import Foundation
import Glibc
import StormyWeather
import TransferMachines

extension Configuration {
    /// The maximum size of the file in bytes, which is more than any real configuration needs.
    static let maximumBytes = 1024 * 1024

    /// Parses a configuration from its text. ``load(path:)`` checks the permissions of the file.
    ///
    /// - Parameters:
    ///   - text: TOML.
    ///   - path: the path of the file, for error messages.
    package static func parse(text: String, path: String) throws(ConfigurationError) -> Configuration {
        try ConfigurationParser(text: text, path: path).configuration
    }
}

/// Reads the tables of a configuration, with one function for each section. Each key, with the limits of its value, is read in
/// only one function.
struct ConfigurationParser {
    private(set) var configuration = Configuration()
    /// The first credential in the file. The error about this credential is thrown if other users can read the file.
    private(set) var credential: ConfigurationError?
    private let lines: [String]

    private enum Section: String, CaseIterable {
        case weather, storm, alerts, schedule, background, notifications, upload

        var keys: [String] {
            switch self {
            case .weather: ["provider", "contact", "base_url", "geocoding_url"]
            case .storm: ["horizon_hours", "thunderstorm", "gusts_kmh", "rain_mm_per_hour", "alert_severity"]
            case .alerts: ["cap_feeds"]
            case .schedule: ["spread_seconds", "missed"]
            case .background: ["refresh_budget_seconds", "processing_budget_seconds", "grace_seconds"]
            case .notifications: ["enabled", "storms", "photos", "downloads", "quiet_hours", "quiet_passes"]
            case .upload: ["keep_location", "default", "destinations"]
            }
        }
    }

    private static let destinationKeys = [
        "kind", "url", "user", "password", "password_file", "token", "token_file", "access_key", "secret_key_file",
        "region", "bucket", "field", "limit_kbps", "location", "path", "ca_file",
    ]
    private static let fullNames = Section.allCases.flatMap { section in section.keys.map { "\(section.rawValue).\($0)" } }

    /// The names of all keys, without the names of their tables.
    static let allKeys = Section.allCases.flatMap(\.keys) + destinationKeys

    init(text: String, path: String) throws(ConfigurationError) {
        lines = ConfigurationText.lines(of: text)
        if text.utf8.contains(0) {
            // The TOML library would also report an error, but the library's message does not help to find the NUL byte.
            throw ConfigurationError(
                .unreadable(reason: "the file contains a NUL byte; write the file again as plain text"), path: path)
        }
        let root: TOMLTable
        do throws(TOMLTable.Refusal) { root = try TOMLTable.read(text) } catch {
            throw ConfigurationError(.syntax(error.words), path: path, line: error.place?.line, column: error.place?.column)
        }
        let elsewhere = ConfigurationParser.fullNames
        let reader = try TableReader(root, path: [], known: Section.allCases.map(\.rawValue), elsewhere: elsewhere, file: path)
        for section in Section.allCases {
            guard let table = try reader.table(section.rawValue, known: section.keys, elsewhere: elsewhere) else { continue }
            switch section {
            case .weather: try weather(table)
            case .storm: try storm(table)
            case .alerts: configuration.alerts.capFeeds = try feeds(table)
            case .schedule: try schedule(table)
            case .background: try background(table)
            case .notifications: try notifications(table)
            case .upload: try upload(table)
            }
        }
    }

    private mutating func weather(_ table: TableReader) throws(ConfigurationError) {
        if let provider = try table.choice("provider", WeatherProvider.self) {
            configuration.weather.provider = provider
        }
        configuration.weather.contact = try table.string("contact") ?? ""
        configuration.weather.baseURL = try address(table, "base_url")
        configuration.weather.geocodingURL = try address(table, "geocoding_url")
        let provider = configuration.weather.provider
        if provider.needsContact, configuration.weather.contact.isEmpty {
            throw table.invalid(
                "provider", "\"\(provider.rawValue)\" without a contact",
                "the service refuses anonymous requests: write contact = \"you@example.org\"")
        }
    }

    /// Reads the addresses of feeds. An address with a key is a credential, so other users must not be able to read the file.
    private mutating func feeds(_ table: TableReader) throws(ConfigurationError) -> [String] {
        let feeds = try table.urls("cap_feeds", atMost: 20)
        let hasSecret = feeds.compactMap { URLComponents(string: $0) }.contains {
            $0.query != nil || $0.user != nil || $0.password != nil
        }
        if hasSecret { record(table.exposed("cap_feeds")) }
        return feeds
    }

    private mutating func storm(_ table: TableReader) throws(ConfigurationError) {
        if let hours = try table.integer("horizon_hours", in: 1...168) { configuration.storm.horizonHours = hours }
        try table.bool("thunderstorm", into: &configuration.storm.thunderstorm)
        try table.number("gusts_kmh", upTo: 1000, positive: true, into: &configuration.storm.gustsKMH)
        try table.number("rain_mm_per_hour", upTo: 1000, positive: true, into: &configuration.storm.rainMMPerHour)
        if let severity = try table.choice("alert_severity", CAPSeverity.self) {
            configuration.storm.alertSeverity = severity
        }
    }

    private mutating func schedule(_ table: TableReader) throws(ConfigurationError) {
        try table.number("spread_seconds", upTo: 86_400, positive: false, into: &configuration.schedule.spreadSeconds)
        if let missed = try table.choice("missed", Configuration.Schedule.Missed.self) { configuration.schedule.missed = missed }
    }

    private mutating func background(_ table: TableReader) throws(ConfigurationError) {
        try table.number(
            "refresh_budget_seconds", upTo: 86_400, positive: true, into: &configuration.background.refreshBudgetSeconds)
        try table.number(
            "processing_budget_seconds", upTo: 86_400, positive: true, into: &configuration.background.processingBudgetSeconds)
        try table.number("grace_seconds", upTo: 3600, positive: false, into: &configuration.background.graceSeconds)
    }

    private mutating func notifications(_ table: TableReader) throws(ConfigurationError) {
        try table.bool("enabled", into: &configuration.notifications.enabled)
        try table.bool("storms", into: &configuration.notifications.storms)
        try table.bool("photos", into: &configuration.notifications.photos)
        try table.bool("downloads", into: &configuration.notifications.downloads)
        if let passes = try table.choice("quiet_passes", Configuration.Notifications.QuietPass.self) {
            configuration.notifications.quietPasses = passes
        }
        guard let text = try table.string("quiet_hours") else { return }
        guard let quiet = Configuration.QuietHours(parsing: text) else {
            throw table.invalid(
                "quiet_hours", "\"\(text)\"", "write two different times of day, as in \"22:00-07:00\", or \"\" for none")
        }
        configuration.notifications.quietHours = quiet
    }

    private mutating func upload(_ table: TableReader) throws(ConfigurationError) {
        configuration.upload.keepLocation = try table.bool("keep_location")
        if let destinations = try table.table("destinations", known: nil) {
            for name in destinations.keys {
                guard let below = try destinations.table(name, known: ConfigurationParser.destinationKeys) else { continue }
                var found = try destination(below)
                found.lines = lines(of: found, section: destinations.line(of: name), address: below.line(of: "url"))
                configuration.upload.destinations[name] = found
            }
        }
        guard let name = try table.string("default") else { return }
        let names = configuration.upload.destinations.keys.sorted()
        guard names.contains(name) else {
            let near = NearestName.find(name, among: names).map { "did you mean \"\($0.name)\"? " } ?? ""
            throw table.invalid("default", "\"\(name)\"", near + "name a destination that has a table [upload.destinations.NAME]")
        }
        configuration.upload.defaultDestination = name
    }

    /// Returns the lines that name a destination and its address.
    ///
    /// - Returns: `nil` if the destination does not begin with a line of its own.
    private func lines(of destination: Configuration.Destination, section: Int?, address: Int?) -> [String]? {
        guard let section = section.flatMap(line), section.hasPrefix("["), !section.hasPrefix("[[") else { return nil }
        let parts = URLComponents(string: destination.url)
        let isSecret = parts?.user != nil || parts?.query != nil
        return [section] + (isSecret ? [] : [address.flatMap(line)].compactMap { $0 })
    }

    private func line(_ number: Int) -> String? {
        guard lines.indices.contains(number - 1) else { return nil }
        return lines[number - 1].trimmingCharacters(in: .whitespacesAndNewlines)
    }

    private mutating func destination(_ table: TableReader) throws(ConfigurationError) -> Configuration.Destination {
        guard let kind = try table.choice("kind", among: UploadKind.protocols) else {
            let kinds = UploadKind.protocols.map(\.rawValue)
            throw table.missing("kind", "write kind = one of " + kinds.joined(separator: ", "))
        }
        guard let url = try address(table, "url", isPresigned: kind == .put) else {
            throw table.missing("url", "write url = \"https://…\"")
        }
        var destination = Configuration.Destination(kind: kind, url: url)
        destination.user = try table.string("user")
        // In a user name with a colon, the server would read the part after the colon as the beginning of the password (RFC 7617,
        // §2).
        if destination.user?.contains(":") == true {
            throw table.invalid(
                "user", "a name with a colon", "remove the colon, because HTTP cannot send a user name with a colon")
        }
        destination.password = try secret(table, "password", orFile: "password_file")
        destination.passwordFile = try table.string("password_file")
        destination.token = try secret(table, "token", orFile: "token_file")
        destination.tokenFile = try table.string("token_file")
        // The access key is not a credential, because an access key is an identifier like `user`. The secret key is always in
        // another file.
        destination.accessKey = try table.string("access_key")
        destination.secretKeyFile = try table.string("secret_key_file")
        destination.region = try table.string("region")
        destination.bucket = try table.string("bucket")
        destination.field = try table.string("field")
        destination.limitKbps = try table.integer("limit_kbps", in: 1...100_000_000)
        destination.location = try table.choice("location", Configuration.Location.self)
        destination.path = try path(table, kind, isPresigned: URLComponents(string: url)?.query != nil)
        destination.caFile = try table.string("ca_file")
        if destination.caFile != nil, URLComponents(string: url)?.scheme?.lowercased() != "https" {
            throw table.invalid(
                "ca_file", "a certificate authority for an http address", "write https:// in url, or remove ca_file")
        }
        return destination
    }

    /// Reads the folders in which photos are stored.
    private func path(
        _ table: TableReader, _ kind: UploadKind, isPresigned: Bool
    ) throws(ConfigurationError) -> String? {
        guard let text = try table.string("path") else { return nil }
        guard kind.hasFolders, !isPresigned else {
            let kinds = UploadKind.protocols.filter(\.hasFolders).map(\.rawValue)
            throw table.invalid(
                "path", "folders for this kind of destination", "remove path; only \(kinds.joined(separator: ", ")) have folders")
        }
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        let isRelative = !text.hasPrefix("/") && !parts.contains("..") && !parts.contains(".")
        let isPlain = !text.contains { $0.isNewline || $0 == "\\" || $0 == "?" || $0 == "#" }
        guard isRelative, isPlain, !text.isEmpty else {
            throw table.invalid("path", "\"\(text)\"", "write a path inside the folder of url, for example \"{year}/{month}/\"")
        }
        let rest = ["{year}", "{month}", "{day}"].reduce(text) { $0.replacing($1, with: "") }
        guard !rest.contains("{"), !rest.contains("}") else {
            throw table.invalid("path", "\"\(text)\"", "only {year}, {month} and {day} are replaced")
        }
        return text
    }

    /// - Parameter isPresigned: `true` if the query of the address is a signature, and therefore a credential in the
    ///   configuration file.
    private mutating func address(
        _ table: TableReader, _ key: String, isPresigned: Bool = false
    ) throws(ConfigurationError) -> String? {
        guard let text = try table.url(key) else { return nil }
        // A user name without a password in the address is also a credential, because several services accept a token as the user
        // name.
        let parts = URLComponents(string: text)
        if isPresigned, parts?.query != nil { record(table.exposed(key)) }
        if parts?.query != nil && !isPresigned || parts?.fragment != nil {
            throw table.invalid(key, "this address", "remove the part that begins with \"?\" or \"#\"")
        }
        if parts?.user?.isEmpty == false || parts?.password?.isEmpty == false { record(table.exposed(key)) }
        return text
    }

    private mutating func secret(_ table: TableReader, _ key: String, orFile file: String) throws(ConfigurationError) -> String? {
        guard let text = try table.string(key) else { return nil }
        if try table.string(file) != nil {
            throw table.invalid(key, "given beside \(file)", "remove one of these two keys")
        }
        record(table.exposed(key))
        return text
    }

    /// Records a credential. Only the first credential of the file is kept.
    private mutating func record(_ found: ConfigurationError) {
        if let credential, (credential.line ?? .max) <= (found.line ?? .max) { return }
        credential = found
    }
}

extension Configuration {
    /// Loads the configuration file. If the file does not exist, the default values are used.
    ///
    /// A file that another user owns or can change is not accepted, as in ssh. A file with a credential is also not accepted if
    /// another user can read it. Credentials are a password, a token, or a user in an address.
    package static func load(path: String) throws(ConfigurationError) -> Configuration {
        guard let file = try ConfigurationFile.read(path) else { return Configuration() }
        if let problem = file.problem { throw ConfigurationError(problem, path: path) }
        let parser = try ConfigurationParser(text: file.text, path: path)
        guard var credential = parser.credential else { return parser.configuration }
        if file.isAnotherUsers, case .exposedCredential(let key) = credential.problem {
            credential.problem = .foreignCredential(key: key)
            throw credential
        }
        if file.othersCanRead { throw credential }
        return parser.configuration
    }
}

extension ConfigurationError.Problem {
    /// - Parameter number: The value of `errno` after a call on the file.
    package init(_ number: Int32) {
        let reason = String(cString: strerror(number))
        switch number {
        case EMFILE, ENFILE, ENOMEM, EINTR, EAGAIN, EBUSY: self = .unavailable(reason: reason, isDisk: false)
        case EIO, ESTALE, ETIMEDOUT, ENXIO, ENODEV: self = .unavailable(reason: reason, isDisk: true)
        default: self = .unreadable(reason: reason)
        }
    }
}

private struct ConfigurationFile {
    var text: String
    var othersCanRead: Bool
    var isAnotherUsers: Bool
    /// The problem if another user can change the file, or replace it.
    var problem: ConfigurationError.Problem?

    /// Reads the file. Returns `nil` if the file does not exist. The same descriptor is checked and read, because another process
    /// may replace the file between the check and the read. With `O_NONBLOCK`, the call does not wait if the path is a named
    /// pipe.
    static func read(_ path: String) throws(ConfigurationError) -> ConfigurationFile? {
        func unreadable(_ reason: String) -> ConfigurationError { ConfigurationError(.unreadable(reason: reason), path: path) }
        func failure(_ number: Int32) -> ConfigurationError { ConfigurationError(.init(number), path: path) }
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            let code = errno
            if code == ENOENT || code == ENOTDIR { return nil }
            throw failure(code)
        }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw failure(errno) }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw unreadable("this is not a regular file; replace it with a regular file")
        }
        let data: Data
        do {
            data = try handle.read(upToCount: Configuration.maximumBytes + 1) ?? Data()
        } catch {
            throw ConfigurationError(.unavailable(reason: "the disk reports an error", isDisk: true), path: path)
        }
        guard data.count <= Configuration.maximumBytes else {
            throw unreadable("the file is larger than 1 MiB; this is not a configuration")
        }
        guard let text = String(data: data, encoding: .utf8) else {
            throw unreadable("the file is not UTF-8; save the file in UTF-8")
        }
        return ConfigurationFile(
            text: text, othersCanRead: status.st_mode & (S_IRGRP | S_IROTH) != 0, isAnotherUsers: status.st_uid != geteuid(),
            problem: problem(of: status, at: path) ?? folderProblem(of: path))
    }

    private static func folderProblem(of path: String) -> ConfigurationError.Problem? {
        let folder = URL(fileURLWithPath: path).deletingLastPathComponent().path
        var status = stat()
        return stat(folder, &status) == 0 ? problem(of: status, at: folder) : nil
    }

    /// Returns the problem if other users can write. The private group that some distributions create for each user is allowed.
    /// In a folder with the sticky bit, users cannot replace files of other users.
    private static func problem(of status: stat, at place: String) -> ConfigurationError.Problem? {
        if status.st_uid != geteuid(), status.st_uid != 0 { return .foreign(place: place) }
        let isSticky = status.st_mode & S_IFMT == S_IFDIR && status.st_mode & S_ISVTX != 0
        let othersCanWrite = status.st_mode & S_IWOTH != 0 || status.st_mode & S_IWGRP != 0 && !isOfThisUserAlone(status.st_gid)
        return !isSticky && othersCanWrite ? .othersCanWrite(place: place) : nil
    }

    private static func isOfThisUserAlone(_ number: gid_t) -> Bool {
        guard let user = getpwuid(geteuid()), user.pointee.pw_gid == number, let group = getgrgid(number) else { return false }
        guard strcmp(user.pointee.pw_name, group.pointee.gr_name) == 0 else { return false }
        var member = group.pointee.gr_mem
        while let name = member?.pointee {
            if strcmp(name, user.pointee.pw_name) != 0 { return false }
            member = member?.advanced(by: 1)
        }
        return true
    }
}
