import ArgumentParser
import BackgroundCommands
import BackgroundRuntime
import BackgroundScenes
import BackgroundTasks
import Foundation
import Glibc
import ProcessSupport
import Stormy
import StormyConfiguration
import StormyWeather

/// The executable `stormy`: a command for the user, or the app if the agent launched this process.
package enum StormyTool {
    /// The manifest that is embedded in the program.
    package static var propertyList: Data { Data(PackageResources.Stormy_Info_plist) }

    /// The names of Stormy's requests and sessions in `status`, `why` and `history`.
    package static let names = [
        NoonSchedule.identifier: "daily check", HeldUploads.identifier: "photos for later",
        WatchedFolders.identifier: "watched folders",
        WeatherSession.identifier: "forecasts",
        PhotoUploads.sessionIdentifier: "photo uploads", Downloads.sessionIdentifier: "downloads",
    ]

    /// The app that the agent launches.
    package static let app = StormyApp.self

    @MainActor
    package static func main() -> Never {
        Output.prepare()
        // The user's umask determines who can read new files. Other users can never write to new files.
        umask(umask(0o022) | 0o022)
        // If the process writes to a closed pipe, the write must fail with an error. SIGPIPE must not end the process during its
        // work.
        signal(SIGPIPE, SIG_IGN)
        // The agent launches the app without arguments. A process with arguments is a command, even if it inherits the variable
        // of a launch.
        if ThisProcess.arguments.count > 1 { unsetenv(LaunchContext.variable) }
        do {
            try AppManifest.use(propertyList: propertyList)
        } catch {
            fatalError("the embedded manifest is damaged: \(error)")
        }
        DesktopIntegration.current = StormyDesktop.integration
        DoctorCommand.examinations = [StormyExamination.findings]
        AutostartEntry.command.withLock { $0 = [AppManifest.executableURL.path, "agent"] }
        if let launch = LaunchContext.current {
            do {
                try configure()
                StormyTrouble.isOver("configuration")
            } catch {
                // A launch without a valid configuration must not count as complete. The problem is shown once, and the launch is
                // retried. If the configuration file changes, the launch is retried immediately.
                let message = CommandFailure(ofStormy: error).message
                StormyTrouble.show("configuration", "Stormy cannot work", message)
                launch.abandon(message)
            }
            app.main()
        }
        Task {
            ProcessExit.end(await StormyRoot.run(Array(ThisProcess.arguments.dropFirst())))
        }
        dispatchMain()
    }

    /// Reads the configuration and applies each part. Commands that need settings call this method first.
    package static func configure() throws {
        let directories = AppRuntime.shared.directories
        let configuration = try Configuration.load(
            path: directories.configuration.appendingPathComponent("config.toml").path)
        StormySettings.current = try settings(configuration, dataFolder: directories.data)
        try backgroundSettings(configuration).apply()
    }

    /// Reads the configuration for commands that cancel work or stop the agent. Such commands also work if the configuration has
    /// an error.
    ///
    /// - Returns: the reason why the defaults are used, or `nil` if the configuration was applied.
    @discardableResult
    static func configureIfPossible() throws -> String? {
        do {
            try configure()
            return nil
        } catch {
            StormySettings.current = StormySettings(dataFolder: AppRuntime.shared.directories.data)
            let trouble = CommandFailure(ofStormy: error).message
            Output.note("stormy: \(trouble)")
            return trouble
        }
    }

    static func settings(_ configuration: Configuration, dataFolder: URL) throws -> StormySettings {
        var settings = StormySettings(dataFolder: dataFolder)
        settings.weatherBaseURL = configuration.weather.baseURL
        settings.geocodingBaseURL = configuration.weather.geocodingURL
        settings.weatherProvider = configuration.weather.provider
        let contact = configuration.weather.contact
        settings.hasContact = !contact.isEmpty
        settings.warningFeeds = configuration.alerts.capFeeds
        settings.userAgent = "Stormy/\(ProductVersion.released)" + (contact.isEmpty ? "" : " (\(contact))")
        settings.rule = StormRule(
            horizonHours: configuration.storm.horizonHours, thunderstorm: configuration.storm.thunderstorm,
            gustsKMH: configuration.storm.gustsKMH, rainMMPerHour: configuration.storm.rainMMPerHour,
            alertSeverity: configuration.storm.alertSeverity)
        settings.spreadSeconds = configuration.schedule.spreadSeconds
        settings.skipsMissedChecks = configuration.schedule.missed == .skip
        settings.keepsLocation = configuration.upload.keepLocation
        // If a password file cannot be read, only uploads fail. Other commands continue.
        let destinations = Destinations(configuration)
        do {
            settings.destination = try destinations.named(nil)
        } catch {
            if destinations.hasDefault { settings.destinationTrouble = CommandFailure(ofStormy: error).message }
        }
        settings.destinations = configuration.upload.destinations.keys.sorted().compactMap { try? destinations.named($0) }
        settings.secretFiles = configuration.upload.destinations.values.flatMap { destination in
            [destination.passwordFile, destination.tokenFile, destination.secretKeyFile].compactMap { $0 }.map {
                SecretFile($0).path
            }
        }
        return settings
    }

    private static func backgroundSettings(_ configuration: Configuration) -> BackgroundSettings {
        var settings = BackgroundSettings()
        settings.refreshBudget = configuration.background.refreshBudgetSeconds
        settings.processingBudget = configuration.background.processingBudgetSeconds
        settings.grace = configuration.background.graceSeconds
        // The app exits immediately after its work, because the app keeps no data in memory that a later launch needs.
        settings.continuation = 0
        settings.notificationsEnabled = configuration.notifications.enabled
        settings.quietHours = configuration.notifications.quietHours.map { ($0.fromMinute, $0.untilMinute) }
        settings.quietHoursPass =
            switch configuration.notifications.quietPasses {
            case .extreme: .critical
            case .storms: .timeSensitive
            case .none: nil
            }
        let notifications = configuration.notifications
        settings.silencedCategories = Set(
            [
                (StormNotifier.category, notifications.storms), (StormNotifier.calledOffCategory, notifications.storms),
                (PhotoUploads.category, notifications.photos),
                (Downloads.category, notifications.downloads),
            ].filter { !$0.1 }.map(\.0))
        let directories = AppRuntime.shared.directories
        settings.retriesWhenFilesChange = [directories.configuration.appendingPathComponent("config.toml"), directories.data]
        return settings
    }
}
