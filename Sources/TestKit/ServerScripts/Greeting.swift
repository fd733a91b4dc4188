/// What a client hears that has opened a connection and said its first bytes.
///
/// Asked for `https://` it can speak TLS with a certificate that is right or wrong, and fail in every way that a handshake ends
/// before there is one to look at.
public enum Greeting: Sendable, Equatable {
    /// HTTP is spoken.
    case http
    /// TLS 1.2 or 1.3, and HTTP in it. A connection that is then cut ends without TLS's close_notify, as a network's end would be.
    case https(ServerCertificate)
    /// A fatal TLS alert and the end: 40 no common cipher, 70 no common version, 80 trouble inside, 112 no such name (RFC 8446, 6.2).
    case alert(UInt8)
    /// Bytes that are no TLS and no HTTP, and the end.
    case garbage
    /// The end.
    case hangUp
    /// Nothing, for as long as the client waits.
    case silence
}

/// A certificate for `localhost` and 127.0.0.1 that the server shows, and what is wrong with it.
public enum ServerCertificate: String, Sendable, CaseIterable {
    /// Nothing, for a client that trusts the server's `FaultyServer.certificateAuthority`.
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
