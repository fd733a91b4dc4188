import TransferMachines

extension Configuration {
    /// Where photos go.
    package struct Upload: Sendable, Equatable {
        /// `keep_location`: whether photos keep their location at destinations without a `location` line. `nil` without the line.
        package var keepLocation: Bool?
        /// `default`: the destination used when none is named; always a key of ``destinations``.
        package var defaultDestination: String?
        /// `destinations`, by name.
        package var destinations: [String: Destination] = [:]

        /// The defaults.
        package init() {}

        /// The destination to use: the named one; without a name the default, or the only one there is.
        /// nil when there is none.
        package func destination(named name: String? = nil) -> (name: String, destination: Destination)? {
            let only = destinations.count == 1 ? destinations.keys.first : nil
            guard let wanted = name ?? defaultDestination ?? only, let found = destinations[wanted] else { return nil }
            return (wanted, found)
        }

        /// The destinations for which no line says whether photos keep their location, in alphabetical order.
        package var destinationsWithoutLocation: [String] {
            keepLocation == nil ? destinations.filter { $0.value.location == nil }.keys.sorted() : []
        }
    }

    /// Whether photos keep their location.
    package enum Location: String, Sendable, CaseIterable {
        case keep
        case remove
    }

    /// One place photos go to. File names are as written: `~` is the caller's to expand.
    package struct Destination: Sendable, Equatable {
        /// `kind`
        package var kind: UploadKind
        /// `url`: http or https, with a host.
        package var url: String
        /// `user`
        package var user: String?
        /// `password`: a credential in the file itself.
        package var password: String?
        /// `password_file`: a file with the password; never beside ``password``.
        package var passwordFile: String?
        /// `token`: a credential in the file itself.
        package var token: String?
        /// `token_file`: a file with the token; never beside ``token``.
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
        /// `limit_kbps`: at most so many kilobits per second for all uploads together, from 1 to
        /// 100,000,000; nil for no limit.
        package var limitKbps: Int?
        /// `location`; `nil` without the line.
        package var location: Location?
        /// `ca_file`: a PEM file with the certificate authorities of the server. They replace the system's.
        package var caFile: String?

        /// A destination with what every kind needs.
        package init(kind: UploadKind, url: String) {
            self.kind = kind
            self.url = url
        }
    }
}
