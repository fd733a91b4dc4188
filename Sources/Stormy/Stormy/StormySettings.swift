import BackgroundTransfer
import Foundation
import StormyWeather
import Synchronization

/// What Stormy needs to know that is not in its store: the tool reads it from the configuration.
public struct StormySettings: Sendable, Equatable {
    /// Folder of the store.
    public var dataFolder: URL
    /// Replaces scheme, host and port of the weather service.
    public var weatherBaseURL: String?
    public var geocodingBaseURL: String?
    public var userAgent: String
    public var rule: StormRule
    /// At most so many seconds after the wall-clock time this installation wakes.
    public var spreadSeconds: Double
    public var skipsMissedChecks: Bool
    public var keepsLocation: Bool
    /// Where photos go; `nil`: not configured.
    public var destination: PhotoDestination?

    public init(dataFolder: URL) {
        self.dataFolder = dataFolder
        weatherBaseURL = nil
        geocodingBaseURL = nil
        userAgent = "Stormy/0.1"
        rule = StormRule()
        spreadSeconds = 120
        skipsMissedChecks = false
        keepsLocation = false
        destination = nil
    }

    private static let chosen = Mutex<StormySettings?>(nil)

    /// Those of this process. Set once, before anything else of Stormy is used.
    public static var current: StormySettings {
        get {
            guard let settings = chosen.withLock({ $0 }) else { preconditionFailure("StormySettings.current is not set") }
            return settings
        }
        set { chosen.withLock { $0 = newValue } }
    }
}

/// A server that takes photos.
public struct PhotoDestination: Sendable, Equatable {
    /// A header that opens the door.
    public struct Credential: Sendable, Equatable {
        public var header: String
        public var value: String

        public init(header: String, value: String) {
            self.header = header
            self.value = value
        }
    }

    public var name: String
    public var way: UploadWay
    /// The folder the photos go into.
    public var url: URL

    /// What makes it the same place as yesterday. Without its query, which may be a signature.
    public var identity: String {
        let bucket = way.s3?.bucket.map { " " + $0 } ?? ""
        return "\(name) \(url.absoluteString.prefix { $0 != "?" })\(bucket)"
    }

    /// `nil`: none, or one that signs each request.
    public var credential: Credential?
    /// At most; `nil`: no limit.
    public var bytesPerSecond: Int64?

    public init(name: String, way: UploadWay, url: URL, credential: Credential?, bytesPerSecond: Int64? = nil) {
        self.bytesPerSecond = bytesPerSecond
        self.name = name
        self.way = way
        self.url = url
        self.credential = credential
    }
}
