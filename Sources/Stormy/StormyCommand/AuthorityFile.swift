import Foundation
import Glibc

/// A PEM file with certificate authorities, whose path is in the configuration.
struct AuthorityFile {
    enum Trouble: Error, Equatable {
        case notAbsolute
        case missing
        case notAFile
        case unreadable(reason: String)
        /// Other users can write to the file. Such a user could add a certificate authority, and then read the uploads.
        case writableByOthers
        case tooLarge
        case privateKey
        /// The file contains a certificate in the binary form (DER).
        case notText
        case noCertificate
        /// The certificate at this position cannot be decoded. The first certificate has position 1.
        case damaged(position: Int)
    }

    let path: String

    /// The maximum size in bytes, which is about four times the file with all authorities of a Linux system.
    private static let maximumBytes = 1 << 20

    /// - Parameter name: a path, in which `~/` is the home folder.
    init(_ name: String) { path = SecretFile(name).path }

    /// Reads the file.
    ///
    /// - Throws: the reason why libcurl could not use the file.
    func check() throws(Trouble) {
        // The path must be absolute, because the agent has another working folder.
        guard path.hasPrefix("/") else { throw .notAbsolute }
        // With `O_NONBLOCK`, the call does not wait if the path is a named pipe.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            throw [ENOENT, ENOTDIR].contains(errno) ? .missing : .unreadable(reason: String(cString: strerror(errno)))
        }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        var information = stat()
        guard fstat(descriptor, &information) == 0 else { throw .unreadable(reason: String(cString: strerror(errno))) }
        guard information.st_mode & S_IFMT == S_IFREG else { throw .notAFile }
        guard information.st_mode & S_IWOTH == 0 else { throw .writableByOthers }
        guard let data = try? handle.read(upToCount: Self.maximumBytes + 1) ?? Data() else {
            throw .unreadable(reason: "the disk reports an error")
        }
        guard data.count <= Self.maximumBytes else { throw .tooLarge }
        try Self.judge(data)
    }

    /// Checks the certificates in the bytes of a PEM file (RFC 7468).
    static func judge(_ data: Data) throws(Trouble) {
        // A DER file begins with the tag of a sequence.
        guard data.first != 0x30 else { throw .notText }
        let lines = String(decoding: data, as: UTF8.self).split(whereSeparator: \.isNewline).map {
            $0.trimmingCharacters(in: .whitespaces)
        }
        if lines.contains(where: { $0.hasPrefix("-----BEGIN ") && $0.hasSuffix("PRIVATE KEY-----") }) { throw .privateKey }
        var count = 0
        var content: String?
        for line in lines {
            switch line {
            case "-----BEGIN CERTIFICATE-----", "-----BEGIN X509 CERTIFICATE-----", "-----BEGIN TRUSTED CERTIFICATE-----":
                (content, count) = ("", count + 1)
            case "-----END CERTIFICATE-----", "-----END X509 CERTIFICATE-----", "-----END TRUSTED CERTIFICATE-----":
                guard let text = content, isCertificate(text) else { throw .damaged(position: max(1, count)) }
                content = nil
            default: content?.append(line)
            }
        }
        guard content == nil else { throw .damaged(position: count) }
        guard count > 0 else { throw .noCertificate }
    }

    /// Returns whether the text is base64 of a complete sequence (X.690). More bytes may follow, because OpenSSL appends settings
    /// to a trusted certificate.
    private static func isCertificate(_ base64: String) -> Bool {
        guard let bytes = Data(base64Encoded: base64), bytes.count > 4, bytes[0] == 0x30 else { return false }
        let lengthBytes = bytes[1] < 0x80 ? 0 : Int(bytes[1] & 0x7F)
        guard lengthBytes <= 3, bytes.count >= 2 + lengthBytes else { return false }
        let length = lengthBytes == 0 ? Int(bytes[1]) : bytes[2..<2 + lengthBytes].reduce(0) { $0 << 8 | Int($1) }
        return length > 0 && 2 + lengthBytes + length <= bytes.count
    }

    /// Returns a text for the user.
    func describe(_ trouble: Trouble) -> String {
        switch trouble {
        case .notAbsolute: "\(path) is not an absolute path: write a path that begins with / or ~/"
        case .missing: "the file \(path) does not exist"
        case .notAFile: "\(path) is not a file"
        case .unreadable(let reason): "the file \(path) cannot be read: \(reason)"
        case .writableByOthers: "other users can write to \(path): run chmod o-w on it"
        case .tooLarge: "\(path) is larger than 1 MiB: use a file with the certificates of this server's authority only"
        case .privateKey: "\(path) contains a private key: use a file with certificates only, and keep the key on the server"
        case .notText: "\(path) is not a PEM file: convert it with openssl x509 -inform der -in FILE -out FILE.pem"
        case .noCertificate: "\(path) contains no certificate: a PEM file has lines \"-----BEGIN CERTIFICATE-----\""
        case .damaged(let position): "certificate \(position) in \(path) is damaged: copy the file again"
        }
    }
}
