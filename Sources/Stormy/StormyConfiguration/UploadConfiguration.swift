import TransferMachines

extension Configuration {
    /// Where photos go.
    package struct Upload: Sendable, Equatable {
        /// `keep_location`: whether location metadata may leave the machine.
        package var keepLocation = false
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

        /// A destination with what every kind needs.
        package init(kind: UploadKind, url: String) {
            self.kind = kind
            self.url = url
        }
    }
}
