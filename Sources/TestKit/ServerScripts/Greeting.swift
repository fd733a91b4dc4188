/// The server's reaction to a client that opened a connection and sent its first bytes.
///
/// For `https://` the server uses TLS with a correct or a wrong certificate. The server can also fail before it shows a
/// certificate, in every way in which a handshake can fail.
public enum Greeting: Sendable, Equatable {
    /// HTTP without TLS.
    case http
    /// TLS 1.2 or 1.3 with HTTP inside. If a script cuts the connection later, TLS's close_notify is not sent, as in a network
    /// failure.
    case https(ServerCertificate)
    /// A fatal TLS alert. The connection is then closed. Alert 40 means no common cipher, 70 no common version, 80 an internal
    /// error, and 112 an unknown name (RFC 8446, 6.2).
    case alert(UInt8)
    /// Bytes that are neither TLS nor HTTP. The connection is then closed.
    case garbage
    /// The connection is closed without a response.
    case hangUp
    /// The server sends no response as long as the client waits.
    case silence
}

/// A certificate for `localhost` and 127.0.0.1 that the server shows, with an optional fault.
public enum ServerCertificate: String, Sendable, CaseIterable {
    /// The certificate has no fault for a client that trusts the server's `FaultyServer.certificateAuthority`.
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
