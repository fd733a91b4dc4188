import TransferMachines

extension Configuration {
    /// The destinations of photos.
    package struct Upload: Sendable, Equatable {
        /// `keep_location`: `true` if photos keep their location at destinations without a `location` line. `nil` if the
        /// configuration does not contain this line.
        package var keepLocation: Bool?
        /// `default`: the destination that is used if the user gives no name. The value is always a key of ``destinations``.
        package var defaultDestination: String?
        /// `destinations`: the destinations. The keys of the dictionary are the names of the destinations.
        package var destinations: [String: Destination] = [:]

        /// Creates a value with the default settings.
        package init() {}

        /// Returns the destination with a name. Without a name, returns the default destination, or the only destination. `nil`
        /// if no such destination exists.
        package func destination(named name: String? = nil) -> (name: String, destination: Destination)? {
            let only = destinations.count == 1 ? destinations.keys.first : nil
            guard let wanted = name ?? defaultDestination ?? only, let found = destinations[wanted] else { return nil }
            return (wanted, found)
        }

        /// The destinations without a setting for the location, in alphabetical order.
        package var destinationsWithoutLocation: [String] {
            keepLocation == nil ? destinations.filter { $0.value.location == nil }.keys.sorted() : []
        }
    }

    /// The kind of a destination.
    package typealias Kind = UploadKind

    /// The setting whether photos keep their location.
    package enum Location: String, Sendable, CaseIterable {
        case keep
        case remove
    }

    /// A destination of photos. Paths are stored as they are written in the configuration. The caller expands `~`.
    package struct Destination: Sendable, Equatable {
        /// `kind`
        package var kind: UploadKind
        /// `url`: http or https, with a host.
        package var url: String
        /// `user`
        package var user: String?
        /// `password`: the password itself, which makes the configuration file secret.
        package var password: String?
        /// `password_file`: the path of a file with the password. This key and ``password`` cannot both be set.
        package var passwordFile: String?
        /// `token`: the token itself, which makes the configuration file secret.
        package var token: String?
        /// `token_file`: the path of a file with the token. This key and ``token`` cannot both be set.
        package var tokenFile: String?
        /// `access_key` (S3)
        package var accessKey: String?
        /// `secret_key_file` (S3)
        package var secretKeyFile: String?
        /// `region` (S3)
        package var region: String?
        /// `bucket` (S3)
        package var bucket: String?
        /// `field`: the form field's name (multipart)
        package var field: String?
        /// `limit_kbps`: the maximum rate of all uploads together, in kilobits per second, from 1 to 100,000,000. `nil` for no
        /// limit.
        package var limitKbps: Int?
        /// `location`. `nil` if the configuration does not contain this line.
        package var location: Location?
        /// `path`: the folders inside ``url`` in which photos are stored, for example `{year}/{month}/`. `nil` for no folders.
        package var path: String?
        /// `ca_file`: a PEM file with the certificate authorities of the server. These authorities replace the authorities of the
        /// system.
        package var caFile: String?
        /// The line `[upload.destinations.NAME]` as the file contains it. `nil` if the destination is written in another form of
        /// TOML, for example as an inline table.
        package var section: String? { lines?.first }
        /// The line of the section, and the line with the address. The line with the address is left out if it contains a secret.
        package var lines: [String]?

        /// Creates a destination with the values that every kind needs.
        package init(kind: UploadKind, url: String) {
            self.kind = kind
            self.url = url
        }
    }
}
