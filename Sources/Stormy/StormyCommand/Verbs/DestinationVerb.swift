import ArgumentParser
import BackgroundCommands
import BackgroundRuntime
import BackgroundTransfer
import Foundation
import Stormy
import StormyConfiguration

extension Configuration.Kind: ExpressibleByArgument {
    public static var allValueStrings: [String] { protocols.map(\.rawValue) }

    public init?(argument: String) {
        guard let kind = Configuration.Kind(rawValue: argument), Configuration.Kind.protocols.contains(kind) else { return nil }
        self = kind
    }
}

extension Configuration.Location: ExpressibleByArgument {}

struct DestinationVerb: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "destination", abstract: "Adds, lists, tries and removes upload destinations.",
        discussion: "Example:\n  stormy destination add\n  stormy destination try home",
        subcommands: [DestinationAddVerb.self, List.self, Try.self, Remove.self])

    /// The path of the configuration file.
    static var file: String { AppRuntime.shared.directories.configuration.appendingPathComponent("config.toml").path }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists the upload destinations.", discussion: "Example:\n  stormy destination list --json")

        @Flag(help: "Print JSON.") var json = false

        private struct Row: Encodable {
            let name: String
            let kind: String
            let url: String
            let user: OrNull<String>
            let location: String
            let isDefault: Bool
        }

        func run() async throws {
            let upload = try Configuration.load(path: DestinationVerb.file).upload
            let usual = upload.destination(named: nil)?.name
            let rows = upload.destinations.sorted { $0.key < $1.key }.map { name, destination in
                Row(
                    name: name, kind: destination.kind.rawValue, url: DestinationVerb.shown(destination.url),
                    user: OrNull(destination.user),
                    location: destination.location?.rawValue ?? (upload.keepLocation == true ? "keep" : "remove"),
                    isDefault: name == usual)
            }
            if json { return try Output.json(rows) }
            if rows.isEmpty { Output.line("No upload destination is configured. Add a destination: stormy destination add") }
            for row in rows {
                let location = row.location == "keep" ? "keeps the location of photos" : "removes the location from photos"
                Output.line("\(row.name)  \(row.kind)  \(row.url)  \(location)" + (row.isDefault ? "  (default)" : ""))
            }
        }
    }

    struct Try: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Uploads a small test picture to a destination, and removes the picture from the server.",
            discussion: "Example:\n  stormy destination try home")

        @Argument(help: "The name of the destination. Default: all destinations.", completion: .destinations) var name: String?

        func run() async throws {
            try StormyTool.configure()
            try await DestinationVerb.tryAll(named: name)
        }
    }

    struct Remove: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Removes an upload destination from the configuration. Photos that are queued for the destination wait.",
            discussion: "Example:\n  stormy destination remove home")

        @Argument(help: "The name of the destination.", completion: .destinations) var name: String

        func run() async throws {
            try StormyTool.configure()
            let file = DestinationVerb.file
            let before = try Configuration.load(path: file)
            guard let destination = before.upload.destinations[name] else {
                throw CommandFailure(.notFound, "no destination named \"\(name)\" is configured in \(file)")
            }
            let text = try DestinationVerb.text(of: file)
            let after = try DestinationVerb.explained { try ConfigurationText(text ?? "", path: file).removing(name) }
            try DestinationVerb.explained { try ConfigurationWriter.write(after.text, replacing: text, at: file) }
            Output.line("Removed \(name) from \(file).")
            try removeSecret(of: destination, besides: before)
            try showWaiting()
        }

        /// Removes the secret that `destination add` wrote, if no other destination uses the secret.
        private func removeSecret(of destination: Configuration.Destination, besides before: Configuration) throws {
            let others = before.upload.destinations.filter { $0.key != name }.values.flatMap(DestinationVerb.secretFiles)
            let own = DestinationVerb.secretFiles(destination).first { DestinationSecret.isOwn($0, name) }
            guard let own, !others.contains(own), unlink(own) == 0 else { return }
            Output.line("Removed the file \(own).")
        }

        /// Shows the number of photos that wait for the removed destination.
        private func showWaiting() throws {
            let photos = try StormyStore.inspect(in: AppRuntime.shared.directories.data)?.photos() ?? []
            let own = photos.filter { $0.state == .queued && $0.isForDestination(name) == true }
            let waiting = try PhotoUploads.transfers(of: own).values.filter { !$0.state.hasEnded }.map(\.id).sorted()
            guard let first = waiting.first else { return }
            Output.note(
                """
                \(PhotoRecord.count(waiting.count)) for \(name) will wait, because the destination is not configured any more. To cancel an \
                upload: stormy transfers cancel \(first)
                """)
        }
    }

    /// Tries destinations, and prints a sentence about each of them.
    ///
    /// - Parameter name: The name of the destination. `nil` for all destinations.
    static func tryAll(named name: String?) async throws {
        let destinations = try Destinations()
        let names = name.map { [$0] } ?? destinations.names
        guard !names.isEmpty else {
            throw CommandFailure(
                .badConfiguration, "no upload destination is configured. Add a destination: stormy destination add")
        }
        var problem = FirstProblem()
        for (position, name) in names.enumerated() {
            do {
                try show(try await DestinationTrial(destinations.named(name)).run(), name)
            } catch {
                problem.report(CommandFailure(ofStormy: error), at: position)
            }
        }
        try problem.throwIfAny()
    }

    /// Prints the result of a trial.
    ///
    /// - Throws: ``CommandFailure`` if the destination does not work.
    static func show(_ finding: DestinationTrial.Finding, _ name: String) throws {
        switch finding {
        case .works(.removed, _): Output.line("\(name) works: a test picture was uploaded and removed.")
        case .works(.impossible(let reason), let address), .works(.failed(let reason), let address):
            Output.line("\(name) works: a test picture was uploaded.")
            Output.note("The test picture is still at \(shown(address)): \(reason).")
        case .fails(let reason):
            throw CommandFailure(.unavailable, reason.hasPrefix("\(name): ") ? reason : "\(name): \(reason)")
        }
    }

    /// Returns an address without the user, the password and the query.
    static func shown(_ address: String) -> String {
        guard var parts = URLComponents(string: address) else { return "?" }
        (parts.user, parts.password) = (nil, nil)
        if parts.query != nil { parts.query = "…" }
        return parts.string?.replacing("%E2%80%A6", with: "…") ?? "?"
    }

    /// The absolute paths of the files with the destination's secrets.
    static func secretFiles(_ destination: Configuration.Destination) -> Set<String> {
        Set(
            [destination.passwordFile, destination.tokenFile, destination.secretKeyFile].compactMap {
                $0.map { SecretFile($0).path }
            })
    }

    /// Returns the text of the configuration file, or `nil` if the file does not exist.
    static func text(of file: String) throws -> String? {
        guard let data = FileManager.default.contents(atPath: file) else { return nil }
        return String(decoding: data, as: UTF8.self)
    }

    /// Runs a change of the configuration, and gives its errors an exit code.
    static func explained<Value>(_ change: () throws -> Value) throws -> Value {
        do { return try change() } catch let error as ConfigurationText.Failure {
            throw CommandFailure(.badConfiguration, error.description)
        } catch let error as ConfigurationWriter.Failure {
            throw CommandFailure(.cannotCreate, error.description)
        }
    }
}
