import Foundation

/// Why a transfer waits or failed, for the row, the history and the app's error.
package struct TransferTrouble: Codable, Equatable, Sendable {
    /// `URLError`'s numbers (-1001 timed out, -1003 host, -1004 connect, -1005 lost, -1011 answer, -1200 TLS …).
    package var code: Int
    /// One sentence for a person. No secrets: never headers, never a URL's query.
    package var message: String
    /// The network or the host cannot be reached: such an attempt does not count, and a change of the network is a
    /// reason to try at once.
    package var isWaitingForNetwork: Bool
    /// What a row remembers of it. A time-out is remembered as one of a connection that stood still: where nobody took the
    /// connection in time, nobody could be reached.
    package var recordedCode: Int { isWaitingForNetwork && code == -1001 ? -1004 : code }

    /// Remembered troubles in which nobody could be reached: no name, no connection, no network. An app is told that its task waits for
    /// connectivity.
    package static func isUnreachable(recordedCode code: Int) -> Bool { [-1003, -1004, -1009].contains(code) }

    /// Remembered troubles that a change of the network may end: those, connections that broke, connections that stood still, and what
    /// may be something else in the server's place.
    package static let recordedNetworkCodes = [-1001, -1003, -1004, -1005, -1009] + recordedClockCodes + [-1010]

    /// Remembered troubles that a change of the clock may end.
    package static let recordedClockCodes = [-1202]

    /// What may be wrong between here and the server. Nobody can tell from one answer: it is waited for, and said.
    package enum Suspicion: String, Codable, CaseIterable, Sendable {
        /// Somebody answers in the server's place, and leads to a page of their own.
        case portal
        /// The server's certificate is not valid at this time of this computer.
        case clock
        /// The certificate is not the server's, or nobody vouches for it.
        case certificate
    }

    /// `nil`: what happened is no sign of that.
    package var suspicion: Suspicion?

    /// The HTTP status that was the trouble.
    package var status: Int?
    /// What the server asked for, in seconds, after clamping.
    package var retryAfter: Double?

    package init(
        code: Int, message: String, isWaitingForNetwork: Bool = false, status: Int? = nil, retryAfter: Double? = nil
    ) {
        self.code = code
        self.message = message
        self.isWaitingForNetwork = isWaitingForNetwork
        self.status = status
        self.retryAfter = retryAfter
    }

    /// The trouble that a failed attempt is.
    package init(_ failure: WireFailure) {
        switch failure {
        case .couldNotResolveHost:
            self.init(code: -1003, message: "The host's name could not be resolved.", isWaitingForNetwork: true)
        case .couldNotConnect:
            self.init(code: -1004, message: "The host could not be reached.", isWaitingForNetwork: true)
        case .proxyRefused(407):
            self.init(
                code: -1004, message: "The proxy requires a user name and password (407).", isWaitingForNetwork: true)
        case .proxyRefused(let status):
            self.init(
                code: -1004, message: "The proxy refuses the connection to the server (\(status)).", isWaitingForNetwork: true)
        case .timedOutConnecting:
            self.init(code: -1001, message: "The host did not accept a connection in time.", isWaitingForNetwork: true)
        case .stalled:
            self.init(code: -1001, message: "The connection stood still for too long.")
        case .connectionLost:
            self.init(code: -1005, message: "The connection broke before the whole answer had arrived.")
        case .tlsUntrusted(let why):
            self.init(code: -1202, message: "The server's certificate is not trusted: \(why)")
            suspicion = ["not yet valid", "expired"].contains { why.contains($0) } ? .clock : .certificate
        case .authoritiesUnreadable(let path):
            self.init(code: -3001, message: "The certificate authority file \(path) is missing or is not a PEM file.")
        case .tooManyRedirects:
            self.init(code: -1007, message: "The server redirected too often.")
        case .redirectToOtherScheme:
            self.init(code: -1010, message: "The server redirected to an address that is not allowed.")
        case .bodyTooLarge:
            self.init(code: -1103, message: "The answer is larger than allowed.")
        case .badAnswer(let why):
            self.init(code: -1011, message: "The server's answer could not be understood: \(why)")
        case .unsupportedURL:
            self.init(code: -1002, message: "The address is not an http or https address.")
        case .stoppedByOwner:
            self.init(code: -3000, message: "The local file could not be read or written.")
        case .cancelled:
            self.init(code: -999, message: "The transfer was cancelled.")
        case .other(let code, let message):
            // 35: the TLS handshake broke; often the network, so it is tried again.
            self.init(code: code == 35 ? -1200 : -1, message: "\(message) (libcurl \(code))")
        }
    }

    /// The trouble that an answer's status is.
    package init(head: ResponseHead, now: Date, policy: RetryPolicy, message: String? = nil) {
        self.init(
            code: -1011, message: message ?? "The server answered with status \(head.status).", status: head.status,
            retryAfter: head["Retry-After"].flatMap {
                RetryAfter.seconds($0, now: now, maximum: policy.maximumRetryAfter)
            })
    }
}

extension WireFailure {
    /// Whether the same request may succeed later. The others need a person, or another request.
    var isWorthRetrying: Bool {
        switch self {
        case .couldNotResolveHost, .couldNotConnect, .proxyRefused, .timedOutConnecting, .stalled, .connectionLost, .badAnswer,
            .other,
            .authoritiesUnreadable:
            true
        // Another network, or another time: only for those that may wait for it.
        case .tlsUntrusted, .tooManyRedirects, .redirectToOtherScheme, .bodyTooLarge, .unsupportedURL,
            .stoppedByOwner, .cancelled:
            false
        }
    }

    /// Whether the request may have reached the server, which then may have acted on it.
    var mayHaveActed: Bool {
        switch self {
        case .couldNotResolveHost, .couldNotConnect, .proxyRefused, .timedOutConnecting, .tlsUntrusted, .authoritiesUnreadable,
            .unsupportedURL:
            false
        case .stalled, .connectionLost, .tooManyRedirects, .redirectToOtherScheme, .bodyTooLarge, .badAnswer,
            .stoppedByOwner, .cancelled, .other:
            true
        }
    }
}
