import Foundation

/// The server of an upload, as the user configured it. The ledger stores these values with the upload, so that a later agent uses
/// the same values.
public struct UploadServer: Codable, Equatable, Sendable {
    /// The name of the destination, with which messages about the server begin.
    public var name: String
    /// The section of the configuration that contains the destination's settings (`kind`, `url`, `user`, `ca_file` …), for
    /// example `[upload.destinations.home] of config.toml`. Messages to the user contain this text.
    public var settings: String
    /// The absolute path of a PEM file with certificate authorities. The authorities in the file replace the system's authorities
    /// for every request of the upload. `nil` if the system's authorities apply.
    public var authorityFile: String?
    /// The lines of the configuration file that name the destination and its address. The agent sends the HTTP requests of the
    /// upload only while the configuration file contains these lines. If the user removes or changes the destination, the upload
    /// waits. `nil` if every request is sent.
    public var requiredLines: [RequiredLine]?

    public init(name: String, settings: String, authorityFile: String? = nil, requiredLines: [RequiredLine]? = nil) {
        (self.name, self.settings, self.authorityFile) = (name, settings, authorityFile)
        self.requiredLines = requiredLines
    }
}

/// A line that a text file must contain.
public struct RequiredLine: Codable, Equatable, Hashable, Sendable {
    /// The absolute path of the file.
    public var file: String
    /// The line without a comment and without spaces at its ends.
    public var line: String

    /// - Parameter line: The complete line of the file, possibly with a comment and spaces.
    public init(file: String, line: String) { (self.file, self.line) = (file, Self.content(of: line)) }

    /// Returns the part of a line before a comment, without spaces at its ends. A comment begins with `#` outside quotes, as in
    /// TOML.
    package static func content(of line: some StringProtocol) -> String {
        var quote: Character?
        var isEscaped = false
        let content = line.prefix { character in
            if let open = quote {
                if character == open, !isEscaped { quote = nil }
                isEscaped = open == "\"" && character == "\\" && !isEscaped
                return true
            }
            if character == "\"" || character == "'" { quote = character }
            return character != "#"
        }
        return content.trimmingCharacters(in: .whitespacesAndNewlines)
    }
}

/// The kind of credential that an upload sends.
enum UploadOpener: Equatable, Sendable {
    case nothing
    case password
    case token
    case apiKey
    case accessKey

    init(_ plan: UploadPlan) {
        func header(_ name: String) -> String? { plan.headers.first { $0.name.lowercased() == name }?.value }
        if plan.order.s3 != nil {
            self = .accessKey
        } else if header("x-api-key") != nil {
            self = .apiKey
        } else if let value = header("authorization") {
            self = value.lowercased().hasPrefix("bearer ") ? .token : .password
        } else {
            self = .nothing
        }
    }

    /// The message for a response with status 401.
    var refusal: String {
        switch self {
        case .nothing: "The server requires a user name and password (401)."
        case .password: "The server refused user name or password (401)."
        case .token: "The server refused the token (401)."
        case .apiKey: "The server refused the API key (401)."
        case .accessKey: "The server refused the access key or the secret key (401)."
        }
    }

    /// The settings that contain the secret.
    fileprivate var settings: String {
        switch self {
        case .nothing, .password: "user and password_file"
        case .token, .apiKey: "token_file"
        case .accessKey: "access_key and secret_key_file"
        }
    }
}

/// The advice for the user about a failed attempt: what the user can do, and the settings that the user can change.
struct UploadAdvice: Sendable {
    let server: UploadServer
    let opener: UploadOpener
    /// `true` if the address has a query. The query may be a signature that expires.
    let isPresigned: Bool

    /// Creates advice. Returns `nil` if the upload has no named destination.
    init?(_ plan: UploadPlan) {
        guard let server = plan.order.server else { return nil }
        self.server = server
        opener = UploadOpener(plan)
        isPresigned = plan.order.method == .put && plan.collectionURL.contains("?")
    }

    /// Returns the error with a changed message. The message begins with the name of the destination and ends with the advice.
    func named(_ trouble: TransferTrouble, isTriedAgain: Bool) -> TransferTrouble {
        var named = trouble
        let advice = sentence(trouble, isTriedAgain) ?? (isTriedAgain ? Self.later : nil)
        named.message = "\(server.name): \(trouble.message)" + (advice.map { " " + $0 } ?? "")
        return named
    }

    private static let later = "The upload is tried again automatically."

    /// Returns the advice. Returns `nil` if the message already contains advice, or if no advice is available.
    private func sentence(_ trouble: TransferTrouble, _ isTriedAgain: Bool) -> String? {
        switch trouble.suspicion {
        case .portal?: return nil
        case .clock?: return "Check the date and time of this computer, and whether the server's certificate has expired."
        case .certificate?: return certificate
        case nil: break
        }
        guard let status = trouble.status else { return sentence(code: trouble.code, trouble) }
        return isTriedAgain ? passingSentence(status: status) : sentence(status: status, trouble.code)
    }

    private var certificate: String {
        if let file = server.authorityFile {
            return "Check that \(file) has the certificate authority of this server (ca_file in \(server.settings))."
        }
        return "If the server has its own certificate authority, write the path of its PEM file as ca_file in \(server.settings)."
    }

    /// Returns the advice for a response that may differ at the next attempt.
    private func passingSentence(status: Int) -> String? {
        switch status {
        case 423: "Unlock the file on the server if the lock remains. \(Self.later)"
        case 507: "Free space on the server, or raise the user's quota. \(Self.later)"
        default: nil
        }
    }

    private func sentence(status: Int, _ code: Int) -> String? {
        switch (status, code) {
        case (407, _): return "Write the user name and password into the address of the proxy (https_proxy)."
        case (401, _), (_, -1013):
            return opener == .nothing
                ? "Write \(opener.settings) in \(server.settings), then retry the upload."
                : "Correct \(opener.settings) in \(server.settings), then retry the upload."
        case (403, _):
            return isPresigned
                ? "The address may have expired. Write a new address as url in \(server.settings)."
                : "Allow uploads for this user on the server, then retry the upload. Or correct url in \(server.settings), then upload the file again."
        case (404, _), (409, _), (410, _), (_, -1100):
            return opener == .accessKey
                ? "Correct url and bucket in \(server.settings), then upload the file again."
                : "Create the folder on the server, then retry the upload. Or correct url in \(server.settings), then upload the file again."
        case (405, _), (501, _):
            return "Check kind and url in \(server.settings). The server does not support this kind of upload at this address."
        case (413, _), (_, -1103):
            return "Raise the limit for the size of a file on the server, then retry the upload."
        default: return nil
        }
    }

    private func sentence(code: Int, _ trouble: TransferTrouble) -> String? {
        switch code {
        case -1002: "Correct url in \(server.settings)."
        case -1003: "Check the network connection, and the host name of url in \(server.settings)."
        case -1001, -1004:
            trouble.isWaitingForNetwork
                ? "Check that the server is running, and the host and port of url in \(server.settings)." : nil
        case -1200: "Check the scheme and the port of url in \(server.settings)."
        case -3001: "Restore the certificate authority file, or correct ca_file in \(server.settings)."
        case -3002:
            "If the destination is still configured, retry the upload. If not, add the destination again, or cancel the upload."
        case -3003: "Correct the permissions of the file, then retry the upload."
        default: nil
        }
    }
}

extension UploadOutcome {
    /// Returns the outcome with the advice in the message of its error.
    func advised(by advice: UploadAdvice?) -> UploadOutcome {
        guard let advice else { return self }
        return switch self {
        case .continue, .finished: self
        case .retry(let after, let trouble): .retry(after: after, advice.named(trouble, isTriedAgain: true))
        case .fail(let trouble): .fail(advice.named(trouble, isTriedAgain: false))
        }
    }

    /// Returns the outcome with a changed error. An outcome without an error is returned unchanged.
    func changing(_ change: (TransferTrouble) -> TransferTrouble) -> UploadOutcome {
        switch self {
        case .continue, .finished: self
        case .retry(let after, let trouble): .retry(after: after, change(trouble))
        case .fail(let trouble): .fail(change(trouble))
        }
    }

    /// Returns the outcome with the server's reason in the message of its error. A message that already contains the reason is
    /// not changed.
    func explained(by reason: ServerReason?) -> UploadOutcome {
        guard let reason else { return self }
        return changing { trouble in
            guard !trouble.message.contains(reason.text) else { return trouble }
            var trouble = trouble
            trouble.message += " The server's reason: \"\(reason.text)\"."
            return trouble
        }
    }
}
