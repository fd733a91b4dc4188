import ArgumentParser
import BackgroundCommands
import BackgroundTransfer
import Foundation
import ProcessSupport
import Stormy
import StormyConfiguration

struct DestinationAddVerb: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add",
        abstract: "Adds an upload destination: asks for its settings, tries it, and writes the configuration.",
        discussion: """
            The command asks for each setting that no option gives. A password, token or key is written into a file that only you can \
            read. The destination is added only if a small test picture can be uploaded.

            Example:
              stormy destination add
              stormy destination add nas --kind webdav --url https://nas.example.org/photos/ --user me
            """)

    @Argument(help: "A name for the destination: letters, digits, - and _.") var name: String?
    @Option(help: "The kind of the server.") var kind: Configuration.Kind?
    @Option(help: "The address of the folder for photos, or of the server.") var url: String?
    @Option(help: "The user of the server. An empty text means no user.") var user: String?
    @Option(
        help: ArgumentHelp(
            "A file with the password, token or secret key. Without this option the command asks.", valueName: "file"),
        completion: .file()) var secretFile: String?
    @Option(help: "The name of the bucket (s3).") var bucket: String?
    @Option(help: "The region of the bucket (s3).") var region: String?
    @Option(help: "The access key (s3).") var accessKey: String?
    @Option(help: "The name of the form's file field (multipart).") var field: String?
    @Option(help: "Whether photos keep their location. Default: keep for immich and nextcloud, remove for other kinds.")
    var location: Configuration.Location?
    @Option(
        help: ArgumentHelp("A PEM file with the server's own certificate authority.", valueName: "file"), completion: .file())
    var caFile: String?
    @Flag(name: .customLong("no-try"), help: "Add the destination without a test upload.") var isNotTried = false

    func run() async throws {
        try StormyTool.configure()
        let file = Destinations.file
        let before = try Configuration.load(path: file)
        let name = try checkedName(besides: before)
        var destination = try askedDestination()
        let secret = try askedSecret(of: &destination, name)
        try await tryOut(destination, name, secret)
        try secret?.write()
        do { try DestinationVerb.changeFile { try $0.adding(name, destination) } } catch {
            secret?.remove()
            throw error
        }
        Output.line("Added \(name) to \(file).")
        if let secret { Output.line("The secret is in \(secret.path), which only you can read.") }
        if destination.location == .keep, location == nil {
            Output.line(
                "Photos for \(name) keep their location, because this is your own library. To remove the location: location = \"remove\""
            )
        }
        try DestinationVerb.continueUploads(of: name)
        let isUsual = before.upload.destinations.isEmpty
        Output.line("To upload photos: stormy upload PHOTO\(isUsual ? "" : " --to \(name)")")
    }

    // MARK: Settings

    private func checkedName(besides before: Configuration) throws -> String {
        let chosen =
            try name
            ?? required(
                Prompt.ask("Name of the destination", byDefault: before.upload.destinations["home"] == nil ? "home" : nil), "NAME"
            )
        let isPlain = chosen.unicodeScalars.allSatisfy {
            $0.isASCII && ($0.properties.isAlphabetic || ("0"..."9").contains($0) || $0 == "-" || $0 == "_")
        }
        guard isPlain, (1...60).contains(chosen.count) else {
            throw CommandFailure(.badData, "not a valid name for a destination: expected 1 to 60 letters, digits, - and _")
        }
        guard before.upload.destinations[chosen] == nil else {
            throw CommandFailure(
                .badData, "the destination \(chosen) exists. To replace it, first run: stormy destination remove \(chosen)")
        }
        return chosen
    }

    private func askedDestination() throws -> Configuration.Destination {
        let kinds = Configuration.Kind.protocols.map(\.rawValue).joined(separator: ", ")
        var kind = self.kind
        if kind == nil {
            let text = try required(Prompt.ask("Kind (\(kinds))", byDefault: "webdav"), "--kind")
            kind = Configuration.Kind(argument: text)
        }
        guard let chosen = kind else { throw CommandFailure(.badData, "not a kind of destination: expected one of \(kinds)") }
        let address = try required(url ?? Prompt.ask("Address, for example \(chosen.exampleAddress)"), "--url")
        var destination = Configuration.Destination(kind: chosen, url: address)
        for setting in chosen.settings {
            switch setting {
            case .user: destination.user = optional(user, "User (empty for none)")
            case .bucket: destination.bucket = optional(bucket, "Bucket (empty if the address contains it)")
            case .region: destination.region = optional(region, "Region", byDefault: "us-east-1")
            case .accessKey: destination.accessKey = try required(accessKey ?? Prompt.ask("Access key"), "--access-key")
            case .field: destination.field = optional(field, "Name of the form's file field", byDefault: "file")
            }
        }
        destination.location = location ?? (chosen.isOwnLibrary ? .keep : .remove)
        destination.caFile = caFile.map(Self.absolute)
        return destination
    }

    /// Asks for the secret, and stores the path of its file in the destination. The file is written after the trial.
    ///
    /// - Returns: `nil` if the destination needs no secret, or if the user named a file.
    private func askedSecret(of destination: inout Configuration.Destination, _ name: String) throws -> DestinationSecret? {
        let key: WritableKeyPath<Configuration.Destination, String?>
        let question: String
        switch destination.kind.secret(hasUser: destination.user != nil) {
        case nil: return nil
        case .token: (key, question) = (\.tokenFile, "API key")
        case .secretKey: (key, question) = (\.secretKeyFile, "Secret key")
        case .password: (key, question) = (\.passwordFile, "Password")
        }
        if let secretFile {
            destination[keyPath: key] = Self.absolute(secretFile)
            return nil
        }
        let secret = try required(Prompt.askSecret(question), "--secret-file")
        let file = try DestinationSecret(secret, for: name)
        destination[keyPath: key] = file.path
        return file
    }

    /// Checks the settings and tries the destination.
    private func tryOut(
        _ destination: Configuration.Destination, _ name: String, _ secret: DestinationSecret?
    ) async throws {
        let text = try ConfigurationText("", path: Destinations.file).adding(name, destination)
        let configuration = try Configuration.parse(text: text.text, path: Destinations.file)
        let chosen = try Destinations(configuration, unwritten: secret).named(name)
        if isNotTried { return }
        let finding = try await DestinationTrial(chosen).run()
        if case .cannotBeTried(let reason) = finding { return Output.note("\(name) was not tried: \(reason).") }
        do { try DestinationVerb.show(finding, name) } catch let failure as CommandFailure {
            throw CommandFailure(
                failure.status, "\(failure.message) \(name) was not added. To add \(name) without a test, use the option --no-try"
            )
        }
    }

    /// Returns the path that a file has in every folder.
    private static func absolute(_ path: String) -> String {
        PathName.absolute(SecretFile(path).path)
    }

    private func required(_ answer: String?, _ option: String) throws -> String {
        guard let answer, !answer.isEmpty else { throw CommandFailure(.usage, "missing \(option)") }
        return answer
    }

    private func optional(_ given: String?, _ question: String, byDefault: String? = nil) -> String? {
        let answer = given ?? Prompt.ask(question, byDefault: byDefault)
        return answer?.isEmpty == false ? answer : nil
    }
}
