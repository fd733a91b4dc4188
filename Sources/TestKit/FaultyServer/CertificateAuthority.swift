import COpenSSL
import Foundation
import ServerScripts
import Synchronization

/// Signs the certificates that a server on `https://` shows. The keys are created when they are first needed, and stay in memory
/// as long as the server exists.
final class CertificateAuthority: Sendable {
    private struct State {
        var root: SigningKey?
        var contexts: [ServerCertificate: TLSContext] = [:]
    }

    /// The authority's name. The name is random, because authorities with equal names would differ only in their signatures.
    private let name = "FaultyServer's authority \(UInt32.random(in: 0...UInt32.max))"

    private let state = Mutex(State())

    /// The authority's own certificate, in PEM.
    var pem: String {
        get throws(OpenSSLError) {
            let root = try root()
            let certificate = try Certificate(
                of: root, named: name, signedBy: root, named: name, days: -1...30,
                extensions: [(NID_basic_constraints, "critical,CA:TRUE,pathlen:0"), (NID_key_usage, "critical,keyCertSign")])
            return try certificate.pem
        }
    }

    /// Returns the TLS settings for connections that show the certificate.
    func context(for kind: ServerCertificate) throws(OpenSSLError) -> TLSContext {
        if let known = state.withLock({ $0.contexts[kind] }) { return known }
        let context = try make(kind)
        state.withLock { $0.contexts[kind] = context }
        return context
    }

    private func root() throws(OpenSSLError) -> SigningKey {
        let made = try SigningKey()
        return state.withLock { state in
            let root = state.root ?? made
            state.root = root
            return root
        }
    }

    private func make(_ kind: ServerCertificate) throws(OpenSSLError) -> TLSContext {
        let leaf = try SigningKey()
        let host = kind == .anotherHost ? "example.org" : "localhost"
        let (signerName, signer): (String, SigningKey) =
            switch kind {
            case .anotherAuthority: ("Another authority", try SigningKey())
            case .selfSigned: (host, leaf)
            case .valid, .expired, .notYetValid, .anotherHost: (name, try root())
            }
        let days: ClosedRange<Int> =
            switch kind {
            case .expired: -30...(-1)
            case .notYetValid: 1...30
            case .valid, .anotherHost, .anotherAuthority, .selfSigned: -1...30
            }
        let names = kind == .anotherHost ? "DNS:\(host)" : "DNS:\(host),IP:127.0.0.1"
        let certificate = try Certificate(
            of: leaf, named: host, signedBy: signer, named: signerName, days: days,
            extensions: [(NID_basic_constraints, "critical,CA:FALSE"), (NID_subject_alt_name, names)])
        return try TLSContext(certificate, leaf)
    }
}

/// An error of OpenSSL, with OpenSSL's text.
struct OpenSSLError: Error, CustomStringConvertible {
    let description: String

    init(_ what: String) {
        var text = [CChar](repeating: 0, count: 256)
        let code = ERR_get_error()
        ERR_error_string_n(code, &text, text.count)
        description =
            code == 0
            ? what : "\(what): \(String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self))"
    }
}

/// A private key on the curve P-256.
// The type is unchecked because a key never changes after its creation, and OpenSSL counts the references to the key atomically.
private final class SigningKey: @unchecked Sendable {
    let pointer: OpaquePointer

    init() throws(OpenSSLError) {
        guard let made = copenssl_new_p256_key() else { throw OpenSSLError("no key") }
        pointer = made
    }

    deinit { EVP_PKEY_free(pointer) }
}

/// A signed X.509 certificate.
private final class Certificate {
    let pointer: OpaquePointer

    /// - Parameter days: The first and the last day of validity, relative to today.
    init(
        of key: SigningKey, named subject: String, signedBy signer: SigningKey, named issuer: String, days: ClosedRange<Int>,
        extensions: [(identifier: Int32, value: String)]
    ) throws(OpenSSLError) {
        guard let made = X509_new() else { throw OpenSSLError("no certificate") }
        pointer = made
        let day = 86_400
        let isFilled =
            X509_set_version(made, Int(X509_VERSION_3)) == 1
            && ASN1_INTEGER_set_uint64(X509_get_serialNumber(made), UInt64.random(in: 1...(1 << 62))) == 1
            && X509_gmtime_adj(X509_getm_notBefore(made), days.lowerBound * day) != nil
            && X509_gmtime_adj(X509_getm_notAfter(made), days.upperBound * day) != nil
            && X509_set_pubkey(made, key.pointer) == 1
            && Self.set(subject, in: X509_get_subject_name(made)) && Self.set(issuer, in: X509_get_issuer_name(made))
            && extensions.allSatisfy { copenssl_add_extension(made, $0.identifier, $0.value) == 1 }
        guard isFilled, X509_sign(made, signer.pointer, EVP_sha256()) > 0 else { throw OpenSSLError("no certificate") }
    }

    deinit { X509_free(pointer) }

    private static func set(_ commonName: String, in name: OpaquePointer?) -> Bool {
        X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, commonName, -1, -1, 0) == 1
    }

    var pem: String {
        get throws(OpenSSLError) {
            let buffer = BIO_new(BIO_s_mem())
            defer { BIO_free(buffer) }
            guard PEM_write_bio_X509(buffer, pointer) == 1 else { throw OpenSSLError("no PEM") }
            var bytes = [UInt8](repeating: 0, count: BIO_ctrl_pending(buffer))
            BIO_read(buffer, &bytes, Int32(bytes.count))
            return String(decoding: bytes, as: UTF8.self)
        }
    }
}

/// OpenSSL's settings for connections that show a certificate.
// The type is unchecked because the object is complete before it is shared, and OpenSSL locks the state that connections share.
final class TLSContext: @unchecked Sendable {
    let pointer: OpaquePointer

    fileprivate init(_ certificate: Certificate, _ key: SigningKey) throws(OpenSSLError) {
        guard let made = SSL_CTX_new(TLS_server_method()) else { throw OpenSSLError("no TLS") }
        pointer = made
        guard copenssl_set_least_version(made, TLS1_2_VERSION) == 1, SSL_CTX_use_certificate(made, certificate.pointer) == 1,
            SSL_CTX_use_PrivateKey(made, key.pointer) == 1
        else { throw OpenSSLError("no TLS") }
        SSL_CTX_set_alpn_select_cb(
            made, { _, chosen, length, offered, count, _ in TLSContext.choose(chosen, length, offered, count) }, nil)
    }

    deinit { SSL_CTX_free(pointer) }

    /// Chooses HTTP/1.1 if the client offers HTTP/1.1, and no protocol otherwise. In the client's offer, the length of each name
    /// precedes the name (RFC 7301).
    private static func choose(
        _ chosen: UnsafeMutablePointer<UnsafePointer<UInt8>?>?, _ length: UnsafeMutablePointer<UInt8>?,
        _ offered: UnsafePointer<UInt8>?, _ count: UInt32
    ) -> Int32 {
        var rest = UnsafeBufferPointer(start: offered, count: Int(count))[...]
        while let size = rest.popFirst(), rest.count >= size {
            let name = rest.prefix(Int(size))
            if name.elementsEqual("http/1.1".utf8) {
                chosen?.pointee = UnsafeBufferPointer(rebasing: name).baseAddress
                length?.pointee = size
                return SSL_TLSEXT_ERR_OK
            }
            rest = rest.dropFirst(Int(size))
        }
        return SSL_TLSEXT_ERR_NOACK
    }
}
