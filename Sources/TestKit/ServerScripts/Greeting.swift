/// The server's reaction to a client that opened a connection and sent its first bytes.
///
/// For `https://` the server can use TLS with a correct or a wrong certificate. The server can also fail in every way in which a
/// handshake ends before a certificate is shown.
public enum Greeting: Sendable, Equatable {
    /// HTTP without TLS.
    case http
    /// TLS 1.2 or 1.3 with HTTP inside. A later cut ends the connection without TLS's close_notify, as a network failure does.
    case https(ServerCertificate)
    /// A fatal TLS alert, then the end: 40 no common cipher, 70 no common version, 80 internal error, 112 unknown name (RFC 8446, 6.2).
    case alert(UInt8)
    /// Bytes that are neither TLS nor HTTP, then the end.
    case garbage
    /// The end of the connection.
    case hangUp
    /// No response, for as long as the client waits.
    case silence
}

/// A certificate for `localhost` and 127.0.0.1 that the server shows, with an optional fault.
public enum ServerCertificate: String, Sendable, CaseIterable {
    /// No fault, for a client that trusts the server's `FaultyServer.certificateAuthority`.
    case valid
    /// The certificate expired a day ago.
    case expired
    /// The certificate becomes valid in a day.
    case notYetValid = "not-yet-valid"
    /// The certificate is for `example.org`.
    case anotherHost = "another-host"
    /// An unknown authority signed the certificate.
    case anotherAuthority = "another-authority"
    /// The certificate is self-signed.
    case selfSigned = "self-signed"
}
