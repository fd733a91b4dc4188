import ArgumentParser
import BackgroundCommands
import BackgroundRuntime
import BackgroundTransfer
import Foundation
import ProcessSupport
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
            let upload = try Configuration.load(path: Destinations.file).upload
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
            let file = Destinations.file
            let before = try Configuration.load(path: file)
            guard let destination = before.upload.destinations[name] else {
                throw CommandFailure(.notFound, "no destination named \"\(name)\" is configured in \(file)")
            }
            try DestinationVerb.changeFile { try $0.removing(name) }
            Output.line("Removed \(name) from \(file).")
            for secret in DestinationVerb.secretFiles(destination).sorted() {
                Output.note("The secret stays in the file \(secret). Remove the file if you do not need it.")
            }
            try stopUploads()
        }

        /// Stops the requests for the removed destination, and shows the number of photos that wait for it.
        private func stopUploads() throws {
            let waiting = try DestinationVerb.waitingUploads(of: name).ids.sorted()
            guard let first = waiting.first else { return }
            // The next attempt of a stopped upload finds that the destination is not configured.
            try BackgroundTransfers.perform(.pause, on: .ids(Set(waiting)))
            try BackgroundTransfers.perform(.resume, on: .ids(Set(waiting)))
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
        case .cannotBeTried(let reason): throw CommandFailure(.unavailable, "\(name) was not tried: \(reason)")
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

    /// Continues the photos that wait for a destination, with its current settings.
    static func continueUploads(of name: String) throws {
        let (photos, waiting) = try waitingUploads(of: name)
        guard !waiting.isEmpty else { return }
        let destinations = try Destinations()
        try BackgroundTransfers.perform(.retry, on: .ids(waiting)) { try destinations.of($0, photos)?.asCredential }
        Output.line("\(PhotoRecord.count(waiting.count)) for \(name) \(waiting.count == 1 ? "continues" : "continue").")
    }

    /// Returns the queued photos for a destination by their submission keys, and the numbers of their unfinished transfers.
    private static func waitingUploads(of name: String) throws -> (photos: [String: PhotoRecord], ids: Set<Int64>) {
        let photos = try StormyStore.inspect(in: AppRuntime.shared.directories.data)?.photos() ?? []
        let own = photos.filter { $0.state == .queued && $0.isForDestination(name) == true }
        let unfinished = try PhotoUploads.transfers(of: own).values.filter { !$0.state.hasEnded }
        return (own.bySubmission, Set(unfinished.map(\.id)))
    }

    /// Changes the configuration file. Two commands at the same time change the file one after the other.
    static func changeFile(_ change: (ConfigurationText) throws -> ConfigurationText) throws {
        let directories = AppRuntime.shared.directories
        try directories.createStateFolders()
        let lock = try FileLock.wait(for: directories.state.appendingPathComponent("configuration.lock"))
        defer { withExtendedLifetime(lock.descriptor) {} }
        let file = Destinations.file
        let old = FileManager.default.contents(atPath: file).map { String(decoding: $0, as: UTF8.self) }
        do {
            try ConfigurationWriter.write(change(ConfigurationText(old ?? "", path: file)), replacing: old, at: file)
        } catch let error as ConfigurationText.Failure {
            throw CommandFailure(.badConfiguration, error.description)
        } catch let error as ConfigurationWriter.Failure {
            throw CommandFailure(.cannotCreate, error.description)
        }
    }
}
