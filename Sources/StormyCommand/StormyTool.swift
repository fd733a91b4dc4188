import ArgumentParser
import BackgroundCommands
import BackgroundLedger
import BackgroundRuntime
import BackgroundTasks
import Foundation
import Glibc
import Stormy
import StormyConfiguration
import StormyWeather

/// The executable `stormy`: a verb for a person, or, launched by the agent, the app itself.
public enum StormyTool {
    static let version = "0.1.0"

    @MainActor
    public static func main() -> Never {
        // A reader that leaves is an error to be handled, not an end in mid-work.
        signal(SIGPIPE, SIG_IGN)
        do {
            try AppManifest.use(propertyList: Data(PackageResources.Stormy_Info_plist))
        } catch {
            fatalError("the embedded manifest is damaged: \(error)")
        }
        if let launch = LaunchContext.current {
            do {
                try configure()
            } catch {
                // Said where a person looks for it: in the history.
                launch.finish(success: false, detail: CommandFailure(ofStormy: error).message)
            }
            StormyApp.main()
        }
        Task {
            await StormyRoot.runAndExit(Array(CommandLine.arguments.dropFirst()))
        }
        dispatchMain()
    }

    /// Reads the configuration and hands each part to whom it concerns. Every verb but help begins with it.
    static func configure() throws {
        let directories = AppRuntime.shared.directories
        let configuration = try Configuration.load(
            path: directories.configuration.appendingPathComponent("config.toml").path)
        StormySettings.current = try settings(configuration, directories)
        try AppRuntime.shared.configure(agentSettings(configuration))
    }

    private static func settings(_ configuration: Configuration, _ directories: AppDirectories) throws -> StormySettings {
        var settings = StormySettings(dataFolder: directories.data)
        guard let provider = WeatherProvider(rawValue: configuration.weather.provider.rawValue), provider.isSupported else {
            throw CommandFailure(
                .badConfiguration,
                "weather.provider = \"\(configuration.weather.provider.rawValue)\" is not supported by this version: use \"open-meteo\""
            )
        }
        settings.weatherBaseURL = configuration.weather.baseURL
        settings.geocodingBaseURL = configuration.weather.geocodingURL
        let contact = configuration.weather.contact
        settings.userAgent = "Stormy/\(version)" + (contact.isEmpty ? "" : " (\(contact))")
        settings.rule = StormRule(
            horizonHours: configuration.storm.horizonHours, thunderstorm: configuration.storm.thunderstorm,
            gustsKMH: configuration.storm.gustsKMH, rainMMPerHour: configuration.storm.rainMMPerHour,
            alertSeverity: CAPSeverity(rawValue: configuration.storm.alertSeverity.rawValue) ?? .severe)
        settings.spreadSeconds = configuration.schedule.spreadSeconds
        settings.skipsMissedChecks = configuration.schedule.missed == .skip
        settings.keepsLocation = configuration.upload.keepLocation
        // A missing password file concerns whoever uploads, not whoever asks for the weather.
        settings.destination = try? destination(named: nil, configuration)
        return settings
    }

    private static func agentSettings(_ configuration: Configuration) -> AgentSettings {
        var settings = AgentSettings()
        settings.refreshBudget = configuration.background.refreshBudgetSeconds
        settings.processingBudget = configuration.background.processingBudgetSeconds
        settings.grace = configuration.background.graceSeconds
        settings.notificationsEnabled = configuration.notifications.enabled
        if let quiet = configuration.notifications.quietHours {
            func text(_ minute: Int) -> String { String(format: "%02d:%02d", minute / 60, minute % 60) }
            settings.quietHours = "\(text(quiet.fromMinute))-\(text(quiet.untilMinute))"
        }
        return settings
    }

    // MARK: Destinations

    /// The destination a person named, or the configured one.
    static func destination(named name: String?) throws -> PhotoDestination {
        let path = AppRuntime.shared.directories.configuration.appendingPathComponent("config.toml").path
        return try destination(named: name, Configuration.load(path: path))
    }

    private static func destination(named name: String?, _ configuration: Configuration) throws -> PhotoDestination {
        let path = AppRuntime.shared.directories.configuration.appendingPathComponent("config.toml").path
        guard let (chosen, destination) = configuration.upload.destination(named: name) else {
            if let name { throw CommandFailure(.badConfiguration, "\(path): no [upload.destinations.\(name)] is configured") }
            throw CommandFailure(
                .badConfiguration,
                """
                no upload destination is configured. Write to \(path):
                  [upload.destinations.home]
                  kind = "webdav"
                  url = "https://dav.example.org/photos/"
                """)
        }
        guard let url = URL(string: address(of: destination)) else {
            throw CommandFailure(.badConfiguration, "\(path): upload.destinations.\(chosen).url is not an address")
        }
        let kind: PhotoDestination.Kind
        switch destination.kind {
        case .webdav: kind = .webdav
        case .put: kind = .put
        case .multipart: kind = .multipart(field: destination.field ?? "file")
        case .tus: kind = .tus
        case .resumable, .s3, .nextcloud, .immich:
            throw CommandFailure(
                .badConfiguration,
                "\(path): upload.destinations.\(chosen).kind = \"\(destination.kind.rawValue)\" is not supported by this version: use \"webdav\", \"put\", \"multipart\" or \"tus\""
            )
        }
        return PhotoDestination(
            name: chosen, kind: kind, url: url, authorization: try authorization(destination, chosen),
            bytesPerSecond: destination.limitKbps.map { max(1, Int64($0) * 1000 / 8) })
    }

    /// As a URL can be written: {name} stands for the photo's, where a server wants it in the address.
    private static func address(of destination: Configuration.Destination) -> String {
        destination.url.replacingOccurrences(of: "{name}", with: "%7Bname%7D")
    }

    /// The `Authorization` that the configuration gives today for uploads to this address; `nil`: it knows no such one.
    static func authorization(forUploadsTo url: String) throws -> String?? {
        let path = AppRuntime.shared.directories.configuration.appendingPathComponent("config.toml").path
        let configuration = try Configuration.load(path: path)
        for (name, destination) in configuration.upload.destinations
        where address(of: destination) == url {
            return .some(try authorization(destination, name))
        }
        return nil
    }

    private static func authorization(_ destination: Configuration.Destination, _ name: String) throws -> String? {
        if let token = try secret(destination.token, destination.tokenFile, name) { return "Bearer \(token)" }
        guard let user = destination.user else { return nil }
        let password = try secret(destination.password, destination.passwordFile, name) ?? ""
        return "Basic " + Data("\(user):\(password)".utf8).base64EncodedString()
    }

    private static func secret(_ value: String?, _ file: String?, _ name: String) throws -> String? {
        if let value { return value }
        guard let file else { return nil }
        let path = NSString(string: file).expandingTildeInPath
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
            throw CommandFailure(.badConfiguration, "upload.destinations.\(name): the file \(path) cannot be read")
        }
        // The same rule as for the configuration itself.
        var information = stat()
        if stat(path, &information) == 0, information.st_mode & 0o077 != 0 {
            throw CommandFailure(
                .badConfiguration, "upload.destinations.\(name): others can read \(path): chmod 600 \(path)")
        }
        return text.trimmingCharacters(in: .newlines)
    }
}
