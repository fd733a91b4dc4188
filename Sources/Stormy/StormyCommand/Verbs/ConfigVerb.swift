import ArgumentParser
import BackgroundCommands
import BackgroundRuntime
import Foundation
import Stormy
import StormyConfiguration

struct ConfigVerb: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config", abstract: "Prints every line that the configuration can have, with its default.",
        discussion: """
            The configuration is ~/.config/stormy/config.toml, or stormy/config.toml in the folder of $XDG_CONFIG_HOME. Without this file, the \
            defaults apply. The output of this command is a valid configuration file.

            Example:
              stormy config | less
              stormy config --check

            \(template)
            """)

    /// The template for the manual page, which also documents the configuration.
    private static let template =
        Configuration.template.replacing("#: ", with: "# ").split(separator: "\n", omittingEmptySubsequences: false)
        .map { $0.isEmpty ? "" : "  " + $0 }.joined(separator: "\n")

    @Flag(help: "Check your configuration, and print its path and its mistakes.") var check = false
    @Flag(
        name: .customLong("try"), help: "With --check: upload a small test picture to each destination, and remove the picture.")
    var isTried = false

    func validate() throws {
        if isTried, !check { throw ValidationError("--try can be used with --check only") }
    }

    func run() async throws {
        guard check else { return Output.line(Configuration.template.replacing("#: ", with: "# ")) }
        let file = Destinations.file
        // This call also checks the password, token or key of each destination.
        let configuration = try Configuration.load(path: file)
        let destinations = Destinations(configuration)
        for name in configuration.upload.destinations.keys.sorted() { _ = try destinations.named(name) }
        let isThere = FileManager.default.fileExists(atPath: file)
        Output.line(isThere ? "\(file): no mistakes" : "\(file) does not exist, so the defaults apply")
        Self.showMissingLocation(configuration)
        try Self.showMissingContact(configuration)
        if isTried, !destinations.names.isEmpty { try await DestinationVerb.tryAll(named: nil) }
    }

    /// If the configuration does not state whether photos keep their location, shows once how to add this setting.
    private static func showMissingLocation(_ configuration: Configuration) {
        let names = configuration.upload.destinationsWithoutLocation
        guard let first = names.first else { return }
        Output.note(
            """
            The location is removed from photos for \(names.joined(separator: ", ")). To choose, write location = "remove" or \
            location = "keep" below [upload.destinations.\(first)]\(names.count > 1 ? " and the others" : "").
            """)
    }

    /// Shows the places for which no official warnings are received because the configuration has no contact.
    private static func showMissingContact(_ configuration: Configuration) throws {
        let folder = AppRuntime.shared.directories.data
        StormySettings.current = try StormyTool.settings(configuration, dataFolder: folder)
        guard let store = try StormyStore.inspect(in: folder) else { return }
        for place in try store.places() {
            if let missing = try WarningLines(of: place, in: store).missingContact { Output.note(missing) }
        }
    }
}
