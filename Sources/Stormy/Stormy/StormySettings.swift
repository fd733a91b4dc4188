import BackgroundRuntime
import BackgroundTransfer
import Foundation
import StormyWeather
import Synchronization

/// The settings that are not in the store. The command `stormy` reads these settings from the configuration.
package struct StormySettings: Sendable, Equatable {
    /// The folder that contains Stormy's database (the store).
    package var dataFolder: URL
    /// An address whose scheme, host and port replace the scheme, host and port of the weather service.
    package var weatherBaseURL: String?
    /// The service that is requested first for places without a chosen service.
    package var weatherProvider = WeatherProvider.openMeteo
    /// `true` if the User-Agent contains a contact. Some services refuse requests without a contact.
    package var hasContact = false
    /// The addresses of feeds of official warnings.
    package var warningFeeds: [String] = []
    package var geocodingBaseURL: String?
    package var userAgent: String
    package var rule: StormRule
    /// The maximum delay in seconds between the scheduled time and the beginning of the check on this installation.
    package var spreadSeconds: Double
    package var skipsMissedChecks: Bool
    /// The value of `keep_location`. `nil` if the configuration does not contain `keep_location`.
    package var keepsLocation: Bool?
    /// The default destination of photos. `nil` if no destination is configured.
    package var destination: PhotoDestination?
    /// The reason why the configured destination cannot be used now. For example, a password file cannot be read.
    package var destinationTrouble: String?
    /// All configured destinations.
    package var destinations: [PhotoDestination] = []

    /// Returns the destination of photos with this identity. Returns `nil` if this destination is not configured.
    func destination(for identity: String) -> PhotoDestination? {
        let names = Set(destinations.map(\.name))
        return destinations.first { $0.isMeant(by: identity, among: names) }
    }
    /// The paths of the files with the passwords and keys of the destinations.
    package var secretFiles: [String] = []

    package init(dataFolder: URL) {
        self.dataFolder = dataFolder
        weatherBaseURL = nil
        geocodingBaseURL = nil
        userAgent = "Stormy"
        rule = StormRule()
        spreadSeconds = 120
        skipsMissedChecks = false
        keepsLocation = nil
        destination = nil
    }

    /// The settings of one process. The settings are separate for each simulated process, because a test can run the code of
    /// several processes in one process.
    private final class Chosen: Sendable {
        let settings = Mutex<StormySettings?>(nil)
    }

    private static func chosen(_ runtime: AppRuntime) -> Chosen { runtime.part { Chosen() } }

    /// `true` after the configuration was read.
    package static var areSet: Bool { chosen(.ofWork).settings.withLock { $0 != nil } }

    /// The settings of this process. The settings are set once, before other parts of Stormy are used.
    package static var current: StormySettings {
        get {
            // In a test, a callback may run without the task-local values of its simulated process.
            let known = chosen(.ofWork).settings.withLock { $0 } ?? chosen(.shared).settings.withLock { $0 }
            guard let settings = known else { preconditionFailure("StormySettings.current is not set") }
            return settings
        }
        set { chosen(.ofWork).settings.withLock { $0 = newValue } }
    }
}

/// A server to which photos are uploaded.
package struct PhotoDestination: Sendable, Equatable {
    /// A header that authorizes requests.
    package struct Credential: Sendable, Equatable {
        package var header: String
        package var value: String

        package init(header: String, value: String) {
            self.header = header
            self.value = value
        }
    }

    package var name: String
    package var way: UploadWay
    /// The address of the folder for photos on the server.
    package var url: URL

    /// The account on the server: a user, or a short hash of an API key. `nil` if the account does not decide where a photo is
    /// stored.
    package var account: String?

    /// A text that identifies the destination permanently. The text contains neither a password nor the parameters of a
    /// signature. The other parameters of the address are included as a digest, because they may be secret.
    package var identity: String {
        named(place(query: isForOneFile ? PresignedQuery.digest(url).map { "?" + $0 } ?? "" : ""))
    }

    /// The form of the identity that the first versions stored.
    package var place: String { place(query: "") }

    private func place(query: String) -> String {
        let bucket = way.s3?.bucket.map { " " + $0 } ?? ""
        return Self.withoutPassword("\(name) \(url.absoluteString.prefix { $0 != "?" })\(query)\(bucket)")
    }

    private func named(_ place: String) -> String { "\(place) \(way.kind.rawValue)" + (account.map { " as \($0)" } ?? "") }

    /// Returns whether a photo with this identity belongs to the destination. The destination's table in the configuration may
    /// have been renamed.
    ///
    /// - Parameter names: The names of all destinations. A photo of another destination in this list does not belong to this
    ///   destination, even if the two destinations have the same address.
    package func isMeant(by identity: String, among names: Set<String>) -> Bool {
        // Earlier versions stored the identity without the query.
        let own = [self.identity, place, named(place)]
        if own.contains(identity) { return true }
        let (name, rest) = Self.parts(identity)
        return !names.contains(name) && own.contains { Self.parts($0).rest == rest }
    }

    /// Returns the name and the remaining text of an identity.
    static func parts(_ identity: String) -> (name: String, rest: Substring) {
        guard let scheme = identity.firstRange(of: "://"), let space = identity[..<scheme.lowerBound].lastIndex(of: " ") else {
            return ("", identity[...])
        }
        return (String(identity[..<space]), identity[identity.index(after: space)...])
    }

    /// `true` if the address is presigned. A presigned address accepts only one photo, because a second photo would replace the
    /// first photo.
    package var isForOneFile: Bool { way.kind == .put && url.query != nil }

    /// Returns an identity without the user and the password in its address.
    static func withoutPassword(_ identity: String) -> String {
        guard let scheme = identity.firstRange(of: "://") else { return identity }
        let host = identity[scheme.upperBound...].prefix { $0 != "/" }
        guard let mark = host.lastIndex(of: "@") else { return identity }
        return String(identity[..<scheme.upperBound] + identity[identity.index(after: mark)...])
    }

    /// The header that authorizes requests. `nil` if the server needs no header, or if each request is signed.
    package var credential: Credential?
    /// The maximum number of bytes per second. `nil` for no limit.
    package var bytesPerSecond: Int64?
    /// `true` if photos keep their location. `nil` if the destination has no setting for this.
    package var keepsLocation: Bool?
    /// The folders inside ``url`` in which photos are stored, for example `{year}/{month}/`. `nil` for no folders.
    package var path: String?

    package init(
        name: String, way: UploadWay, url: URL, credential: Credential?, account: String? = nil, bytesPerSecond: Int64? = nil,
        keepsLocation: Bool? = nil
    ) {
        self.account = account
        (self.bytesPerSecond, self.keepsLocation) = (bytesPerSecond, keepsLocation)
        self.name = name
        self.way = way
        self.url = url
        self.credential = credential
    }

    /// The current credential for a retry, because the user may have corrected a refused password.
    package var asCredential: BackgroundTransfers.Credential {
        BackgroundTransfers.Credential(header: credential.map { ($0.header, $0.value) }, s3: way.s3, server: way.server)
    }
}
