import BackgroundCommands
import BackgroundTransfer
import BackgroundRuntime
import Foundation
import Stormy
import StormyConfiguration

/// The configured destinations of photos, with their credentials.
struct Destinations {
    private let configuration: Configuration
    private let unwritten: DestinationSecret?
    private let path = Self.file

    /// The path of the configuration file.
    static var file: String {
        AppRuntime.shared.directories.configuration.appendingPathComponent("config.toml").path
    }

    /// Reads the configuration again, because the user may have corrected a refused credential.
    init() throws { self.init(try Configuration.load(path: Self.file)) }

    /// - Parameter unwritten: A secret whose file is not written yet.
    init(_ configuration: Configuration, unwritten: DestinationSecret? = nil) {
        (self.configuration, self.unwritten) = (configuration, unwritten)
    }

    /// The names of the destinations, in alphabetical order.
    var names: [String] { configuration.upload.destinations.keys.sorted() }

    /// `true` if a default destination is configured, even if the destination cannot be used now.
    var hasDefault: Bool { configuration.upload.destination(named: nil) != nil }

    /// Returns the destination with a name, or the default destination if the name is `nil`.
    func named(_ name: String?) throws -> PhotoDestination {
        guard let (chosen, destination) = configuration.upload.destination(named: name) else {
            let names = configuration.upload.destinations.keys.sorted()
            if let name {
                let list = names.joined(separator: " and ")
                let others = names.isEmpty ? "" : ". Only \(list) can be used"
                throw CommandFailure(.badConfiguration, "\(path): no [upload.destinations.\(name)] is configured\(others)")
            }
            guard names.isEmpty else {
                throw CommandFailure(
                    .badConfiguration,
                    """
                    \(names.joined(separator: " and ")) are configured, but no destination is the default: \
                    use --to \(names[0]), or write to \(path), \
                    under [upload]:
                      default = "\(names[0])"
                    """)
            }
            throw CommandFailure(
                .badConfiguration,
                """
                no upload destination is configured. To add a destination: stormy destination add. Or write to \(path):
                  [upload.destinations.home]
                  kind = "webdav"
                  url = "https://dav.example.org/photos/"
                All kinds of destinations, each with an example: stormy config
                """)
        }
        return try make(chosen, destination)
    }

    /// Returns the current configuration of the destination for which a photo was queued. `nil` if the destination is no longer
    /// configured, or if its address has changed.
    ///
    /// The destination's name is compared first, because two destinations may have the same address and different users.
    ///
    /// - Parameter photos: The photos by their submission keys.
    func of(_ upload: BackgroundTransferStatus, _ photos: [String: PhotoRecord]) throws -> PhotoDestination? {
        guard let photo = upload.submission.flatMap({ photos[$0] }), let identity = photo.destination else { return nil }
        let names = Set(configuration.upload.destinations.keys)
        let named = configuration.upload.destinations.filter { photo.isForDestination($0.key) == true }
        for (name, destination) in named.isEmpty ? configuration.upload.destinations : named {
            let made = try make(name, destination)
            if made.isMeant(by: identity, among: names) { return made }
        }
        return nil
    }

    private func make(_ name: String, _ destination: Configuration.Destination) throws -> PhotoDestination {
        // The placeholder {name} is replaced with the photo's name, for servers that expect the name in the address.
        guard let url = URL(string: destination.url.replacingOccurrences(of: "{name}", with: "%7Bname%7D")) else {
            throw CommandFailure(.badConfiguration, "\(path): upload.destinations.\(name).url is not an address")
        }
        let server = UploadServer(
            name: name, settings: "[upload.destinations.\(name)] of config.toml",
            authorityFile: try destination.caFile.map { try authorities($0, name) },
            requiredLines: destination.lines?.map { RequiredLine(file: path, line: $0) })
        var way = UploadWay(destination.kind, field: destination.field, server: server)
        var credential = try authorization(destination, name)
        switch destination.kind {
        case .plain, .webdav, .put, .multipart, .tus, .resumable, .nextcloud: break
        case .immich:
            guard let key = try secret(destination.token, destination.tokenFile, name) else {
                throw missing(name, "token_file = \"…\", a file with an API key of Immich")
            }
            credential = PhotoDestination.Credential(header: "x-api-key", value: key)
        case .s3:
            guard let accessKey = destination.accessKey else { throw missing(name, "access_key = \"…\"") }
            guard let secretKey = try secret(nil, destination.secretKeyFile, name) else {
                throw missing(name, "secret_key_file = \"…\", a file with the secret key")
            }
            way.s3 = S3Access(
                bucket: destination.bucket, region: destination.region ?? "us-east-1", accessKey: accessKey, secretKey: secretKey,
                sessionToken: try secret(destination.token, destination.tokenFile, name))
        }
        var made = PhotoDestination(
            name: name, way: way, url: url, credential: credential, account: account(destination, url, credential),
            bytesPerSecond: destination.limitKbps.map { max(1, Int64($0) * 1000 / 8) },
            keepsLocation: destination.location.map { $0 == .keep })
        made.path = destination.path
        return made
    }

    /// Returns a text that distinguishes the users of one server, because each user can have a separate folder. For Immich, the
    /// text is a hash of the key, because a key belongs to one user.
    private func account(
        _ destination: Configuration.Destination, _ url: URL, _ credential: PhotoDestination.Credential?
    ) -> String? {
        guard destination.kind == .immich, let key = credential?.value else { return destination.user ?? url.user() }
        // FNV-1a. With 32 bits the hash distinguishes two keys, and does not reveal a key.
        return String(key.utf8.reduce(UInt32(0x811C_9DC5)) { ($0 ^ UInt32($1)) &* 0x0100_0193 }, radix: 16)
    }

    /// - Returns: The path of the file.
    private func authorities(_ file: String, _ name: String) throws -> String {
        let file = AuthorityFile(file)
        do { try file.check() } catch {
            throw CommandFailure(.badConfiguration, "\(path): upload.destinations.\(name).ca_file: \(file.describe(error))")
        }
        return file.path
    }

    private func missing(_ name: String, _ line: String) -> CommandFailure {
        CommandFailure(.badConfiguration, "\(path): upload.destinations.\(name) needs \(line)")
    }

    private func authorization(_ destination: Configuration.Destination, _ name: String) throws -> PhotoDestination.Credential? {
        // S3 needs no header, because each request is signed.
        if destination.kind == .s3 { return nil }
        if let token = try secret(destination.token, destination.tokenFile, name) {
            return PhotoDestination.Credential(header: "Authorization", value: "Bearer \(token)")
        }
        let known = try secret(destination.password, destination.passwordFile, name)
        guard let user = destination.user else {
            if known != nil { throw missing(name, "user = \"…\", the user of the password") }
            return nil
        }
        guard let password = known else { throw missing(name, "password_file = \"…\", a file with the password of the user") }
        let value = "Basic " + Data("\(user):\(password)".utf8).base64EncodedString()
        return PhotoDestination.Credential(header: "Authorization", value: value)
    }

    private func secret(_ value: String?, _ file: String?, _ name: String) throws -> String? {
        if let value { return value }
        guard let file else { return nil }
        let secretFile = SecretFile(file)
        if let unwritten, unwritten.path == secretFile.path { return unwritten.secret }
        do { return try secretFile.read() } catch {
            let words = secretFile.describe(error) + (error == .readableByOthers ? ": chmod 600 \(secretFile.path)" : "")
            throw CommandFailure(.badConfiguration, "upload.destinations.\(name): \(words)")
        }
    }
}
