import BackgroundRuntime
import BackgroundTransfer
import Foundation
import StormyWeather
import Synchronization

/// What Stormy needs to know that is not in its store: the tool reads it from the configuration.
package struct StormySettings: Sendable, Equatable {
    /// Folder of the store.
    package var dataFolder: URL
    /// Replaces scheme, host and port of the weather service.
    package var weatherBaseURL: String?
    /// Asked first, where a place has none of its own.
    package var weatherProvider = WeatherProvider.openMeteo
    /// The User-Agent says how its user is reached: without, some services refuse to answer.
    package var hasContact = false
    /// Feeds of official warnings.
    package var warningFeeds: [String] = []
    package var geocodingBaseURL: String?
    package var userAgent: String
    package var rule: StormRule
    /// At most so many seconds after the wall-clock time this installation wakes.
    package var spreadSeconds: Double
    package var skipsMissedChecks: Bool
    /// `keep_location`; `nil` without the line.
    package var keepsLocation: Bool?
    /// Where photos go; `nil`: not configured.
    package var destination: PhotoDestination?
    /// The reason why the destination that is configured cannot be used now, for example a password file that cannot be read.
    package var destinationTrouble: String?
    /// All that are configured.
    package var destinations: [PhotoDestination] = []

    /// The destination of photos with this identity. `nil` if it is not configured.
    func destination(for identity: String) -> PhotoDestination? {
        let names = Set(destinations.map(\.name))
        return destinations.first { $0.isMeant(by: identity, among: names) }
    }
    /// Paths of the files with their passwords and keys.
    package var secretFiles: [String] = []

    package init(dataFolder: URL) {
        self.dataFolder = dataFolder
        weatherBaseURL = nil
        geocodingBaseURL = nil
        userAgent = "Stormy/0.1"
        rule = StormRule()
        spreadSeconds = 120
        skipsMissedChecks = false
        keepsLocation = nil
        destination = nil
    }

    /// The settings of one process. A test host has several processes in one.
    private final class Chosen: Sendable {
        let settings = Mutex<StormySettings?>(nil)
    }

    private static func chosen(_ runtime: AppRuntime) -> Chosen { runtime.part { Chosen() } }

    /// `true` after the configuration was read.
    package static var areSet: Bool { chosen(.ofWork).settings.withLock { $0 != nil } }

    /// The settings of this process. Set once, before anything else of Stormy is used.
    package static var current: StormySettings {
        get {
            // A callback of a hosted test does not carry the test's values.
            let known = chosen(.ofWork).settings.withLock { $0 } ?? chosen(.shared).settings.withLock { $0 }
            guard let settings = known else { preconditionFailure("StormySettings.current is not set") }
            return settings
        }
        set { chosen(.ofWork).settings.withLock { $0 = newValue } }
    }
}

/// A server that takes photos.
package struct PhotoDestination: Sendable, Equatable {
    /// A header that opens the door.
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
    /// The folder the photos go into.
    package var url: URL

    /// Whose photos they are on the server: a user, or a mark of an API key. `nil` if that does not decide where a photo is.
    package var account: String?

    /// The same place has the same identity on another day. Without a password, and without the parameters of a signature. Of other
    /// parameters it has a digest, because they may be secret.
    package var identity: String {
        named(place(query: isForOneFile ? PresignedQuery.digest(url).map { "?" + $0 } ?? "" : ""))
    }

    /// The identity that the first versions wrote.
    package var place: String { place(query: "") }

    private func place(query: String) -> String {
        let bucket = way.s3?.bucket.map { " " + $0 } ?? ""
        return Self.withoutPassword("\(name) \(url.absoluteString.prefix { $0 != "?" })\(query)\(bucket)")
    }

    private func named(_ place: String) -> String { "\(place) \(way.kind.rawValue)" + (account.map { " as \($0)" } ?? "") }

    /// Returns whether a photo with this identity belongs to the destination. Its table in the configuration may have another name by now.
    ///
    /// - Parameter names: The names of all destinations. A photo of another one of them is not meant, also at the same address.
    package func isMeant(by identity: String, among names: Set<String>) -> Bool {
        // Earlier versions wrote it without the query.
        let own = [self.identity, place, named(place)]
        if own.contains(identity) { return true }
        let (name, rest) = Self.parts(identity)
        return !names.contains(name) && own.contains { Self.parts($0).rest == rest }
    }

    /// The name, and what follows it.
    private static func parts(_ identity: String) -> (name: String, rest: Substring) {
        guard let scheme = identity.firstRange(of: "://"), let space = identity[..<scheme.lowerBound].lastIndex(of: " ") else {
            return ("", identity[...])
        }
        return (String(identity[..<space]), identity[identity.index(after: space)...])
    }

    /// A presigned address is for one file: a second photo would replace the first.
    package var isForOneFile: Bool { way.kind == .put && url.query != nil }

    /// The same of one that was written down with them.
    static func withoutPassword(_ identity: String) -> String {
        guard let scheme = identity.firstRange(of: "://") else { return identity }
        let host = identity[scheme.upperBound...].prefix { $0 != "/" }
        guard let mark = host.lastIndex(of: "@") else { return identity }
        return String(identity[..<scheme.upperBound] + identity[identity.index(after: mark)...])
    }

    /// `nil`: none, or one that signs each request.
    package var credential: Credential?
    /// At most; `nil`: no limit.
    package var bytesPerSecond: Int64?
    /// Whether its photos keep their location. `nil` if the destination does not choose.
    package var keepsLocation: Bool?

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

    /// What is configured now: the password that was refused may have been put right.
    package var asCredential: BackgroundTransfers.Credential {
        BackgroundTransfers.Credential(header: credential.map { ($0.header, $0.value) }, s3: way.s3, server: way.server)
    }
}
