import Crypto
import Foundation
import NIOSSL
import Synchronization
import X509

// With what a server on https:// shows who it is.

/// A certificate for `localhost` and 127.0.0.1 that the server shows, and what is wrong with it.
public enum ServerCertificate: String, Sendable, CaseIterable {
    /// Nothing, for a client that trusts the server's ``FaultyServer/certificateAuthority``.
    case valid
    /// Its time ended a day ago.
    case expired
    /// Its time begins in a day.
    case notYetValid = "not-yet-valid"
    /// It is made out to `example.org`.
    case anotherHost = "another-host"
    /// An authority signed it that nobody knows.
    case anotherAuthority = "another-authority"
    /// It signed itself.
    case selfSigned = "self-signed"
}

/// Signs certificates, each when it is first asked for. Keys live in memory, and for as long as the server.
final class CertificateAuthority: Sendable {
    private let key = P256.Signing.PrivateKey()
    private let now = Date()
    private let contexts = Mutex<[ServerCertificate: NIOSSLContext]>([:])

    /// The authority's own certificate, in PEM.
    var pem: String {
        get throws {
            try signed(
                key.publicKey, for: Self.name, by: (Self.name, key), days: -1...30,
                extensions: Certificate.Extensions {
                    Critical(BasicConstraints.isCertificateAuthority(maxPathLength: 0))
                    Critical(KeyUsage(keyCertSign: true))
                }
            ).serializeAsPEM().pemString
        }
    }

    /// What a connection that shows the certificate needs.
    func context(for certificate: ServerCertificate) throws -> NIOSSLContext {
        try contexts.withLock { contexts in
            if let known = contexts[certificate] { return known }
            let context = try make(certificate)
            contexts[certificate] = context
            return context
        }
    }

    private func make(_ kind: ServerCertificate) throws -> NIOSSLContext {
        let leaf = P256.Signing.PrivateKey()
        let host = kind == .anotherHost ? "example.org" : "localhost"
        let signer: (name: String, key: P256.Signing.PrivateKey) =
            switch kind {
            case .anotherAuthority: ("Another authority", P256.Signing.PrivateKey())
            case .selfSigned: (host, leaf)
            default: (Self.name, key)
            }
        let (begin, end): (Double, Double) =
            switch kind {
            case .expired: (-30, -1)
            case .notYetValid: (1, 30)
            default: (-1, 30)
            }
        let certificate = try signed(
            leaf.publicKey, for: host, by: signer, days: begin...end,
            extensions: Certificate.Extensions {
                Critical(BasicConstraints.notCertificateAuthority)
                SubjectAlternativeNames(
                    kind == .anotherHost
                        ? [.dnsName(host)] : [.dnsName(host), .ipAddress(.init(contentBytes: [127, 0, 0, 1]))])
            })
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: [
                .certificate(try NIOSSLCertificate(bytes: Array(certificate.serializeAsPEM().pemString.utf8), format: .pem))
            ],
            privateKey: .privateKey(try NIOSSLPrivateKey(bytes: Array(leaf.pemRepresentation.utf8), format: .pem)))
        configuration.minimumTLSVersion = .tlsv12
        configuration.applicationProtocols = ["http/1.1"]
        return try NIOSSLContext(configuration: configuration)
    }

    private static let name = "FaultyServer's authority"

    /// - Parameter days: from when to when it is valid, from now on.
    private func signed(
        _ publicKey: P256.Signing.PublicKey, for subject: String, by issuer: (name: String, key: P256.Signing.PrivateKey),
        days: ClosedRange<Double>, extensions: Certificate.Extensions
    ) throws -> Certificate {
        try Certificate(
            version: .v3, serialNumber: .init(), publicKey: .init(publicKey),
            notValidBefore: now.addingTimeInterval(days.lowerBound * 86_400),
            notValidAfter: now.addingTimeInterval(days.upperBound * 86_400),
            issuer: try DistinguishedName { CommonName(issuer.name) },
            subject: try DistinguishedName { CommonName(subject) },
            signatureAlgorithm: .ecdsaWithSHA256, extensions: extensions, issuerPrivateKey: .init(issuer.key))
    }
}
