import TransferMachines

extension Configuration {
    /// Where photos go.
    public struct Upload: Sendable, Equatable {
        /// `keep_location`: whether location metadata may leave the machine.
        public var keepLocation = false
        /// `default`: the destination used when none is named; always a key of ``destinations``.
        public var defaultDestination: String?
        /// `destinations`, by name.
        public var destinations: [String: Destination] = [:]

        /// The defaults.
        public init() {}

        /// The destination to use: the named one; without a name the default, or the only one there is.
        /// nil when there is none.
        public func destination(named name: String? = nil) -> (name: String, destination: Destination)? {
            let only = destinations.count == 1 ? destinations.keys.first : nil
            guard let wanted = name ?? defaultDestination ?? only, let found = destinations[wanted] else { return nil }
            return (wanted, found)
        }
    }

    /// One place photos go to. File names are as written: `~` is the caller's to expand.
    public struct Destination: Sendable, Equatable {
        /// `kind`
        public var kind: UploadKind
        /// `url`: http or https, with a host.
        public var url: String
        /// `user`
        public var user: String?
        /// `password`: a credential in the file itself.
        public var password: String?
        /// `password_file`: a file with the password; never beside ``password``.
        public var passwordFile: String?
        /// `token`: a credential in the file itself.
        public var token: String?
        /// `token_file`: a file with the token; never beside ``token``.
        public var tokenFile: String?
        /// `access_key` (S3)
        public var accessKey: String?
        /// `secret_key_file` (S3)
        public var secretKeyFile: String?
        /// `region` (S3)
        public var region: String?
        /// `bucket` (S3)
        public var bucket: String?
        /// `field`: the form field's name (multipart)
        public var field: String?
        /// `limit_kbps`: at most so many kilobits per second, over 0; nil for no limit.
        public var limitKbps: Int?

        /// A destination with what every kind needs.
        public init(kind: UploadKind, url: String) {
            self.kind = kind
            self.url = url
        }
    }
}
