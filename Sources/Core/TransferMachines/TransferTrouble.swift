import Foundation

/// The reason why a transfer waits or failed. The ledger stores the reason in the transfer's row. The history shows the reason,
/// and the app's error contains it.
package struct TransferTrouble: Codable, Equatable, Sendable {
    /// The code of `URLError`, for example -1001 (timed out), -1003 (host), -1004 (connect), -1005 (lost), -1011 (response) or
    /// -1200 (TLS).
    package var code: Int
    /// A sentence for the user. The sentence contains no secrets, so it contains neither headers nor the query of a URL.
    package var message: String
    /// `true` if the network or the host cannot be reached. The failed attempt then does not count as an attempt without
    /// progress. A change of the network starts the next attempt immediately.
    package var isWaitingForNetwork: Bool
    /// The code that is stored in the transfer's row. A time-out before the connection is established is stored as an unreachable
    /// host, and not as a stalled connection.
    package var recordedCode: Int { isWaitingForNetwork && code == -1001 ? -1004 : code }

    /// Returns whether a stored code means that the host could not be reached. The host's name was not found, or no connection or
    /// network was available. The app is then notified that its task waits for connectivity.
    package static func isUnreachable(recordedCode code: Int) -> Bool { [-1003, -1004, -1009].contains(code) }

    /// The stored codes of problems that a change of the network may solve. Such problems are unreachable hosts, lost or stalled
    /// connections, and responses that may come from a captive portal.
    package static let recordedNetworkCodes = [-1001, -1003, -1004, -1005, -1009] + recordedClockCodes + [-1010]

    /// The stored codes of problems that a change of the clock may solve.
    package static let recordedClockCodes = [-1202]

    /// A suspected problem between this computer and the server. A single response does not prove the problem, so the transfer
    /// waits and reports the suspicion.
    package enum Suspicion: String, Codable, CaseIterable, Sendable {
        /// A captive portal responds instead of the server.
        case portal
        /// The server's certificate is not valid at the time that this computer's clock shows.
        case clock
        /// The certificate belongs to another host, or no known authority signed it.
        case certificate
    }

    /// The suspected problem, or `nil` if no problem is suspected.
    package var suspicion: Suspicion?

    /// The HTTP status that caused the problem.
    package var status: Int?
    /// The server's `Retry-After` in seconds, limited to the maximum of the policy.
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

    /// Creates the reason from a failed attempt.
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
            self.init(code: -1001, message: "The connection was idle for too long.")
        case .connectionLost:
            self.init(code: -1005, message: "The connection was closed before the response was complete.")
        case .tlsUntrusted(let why):
            self.init(code: -1202, message: "The server's certificate is not trusted: \(why)")
            suspicion = ["not yet valid", "expired"].contains { why.contains($0) } ? .clock : .certificate
        case .authoritiesUnreadable(let path):
            self.init(code: -3001, message: "The certificate authority file \(path) is missing or is not a PEM file.")
        case .requiredLineMissing(let required, nil):
            self.init(code: -3002, message: "The file \(required.file) does not contain the line \(required.line).")
        case .requiredLineMissing(let required, let reason?):
            self.init(code: -3003, message: "The file \(required.file) cannot be read: \(reason).")
        case .tooManyRedirects:
            self.init(code: -1007, message: "The server redirected too often.")
        case .redirectToOtherScheme:
            self.init(code: -1010, message: "The server redirected to an address that is not allowed.")
        case .bodyTooLarge:
            self.init(code: -1103, message: "The response is larger than allowed.")
        case .badAnswer(let why):
            self.init(code: -1011, message: "The server's response is not valid: \(why)")
        case .unsupportedURL:
            self.init(code: -1002, message: "The address is not an http or https address.")
        case .stoppedByOwner:
            self.init(code: -3000, message: "The local file could not be read or written.")
        case .cancelled:
            self.init(code: -999, message: "The transfer was cancelled.")
        case .other(let code, let message):
            // Code 35 means that the TLS handshake failed. The network is often the cause, so the transfer is tried again.
            self.init(code: code == 35 ? -1200 : -1, message: "\(message) (libcurl \(code))")
        }
    }

    /// Creates the reason from the status of a response.
    package init(head: ResponseHead, now: Date, policy: RetryPolicy, message: String? = nil) {
        self.init(
            code: -1011, message: message ?? "The server responded with status \(head.status).", status: head.status,
            retryAfter: head["Retry-After"].flatMap {
                RetryAfter.seconds($0, now: now, maximum: policy.maximumRetryAfter)
            })
    }
}

extension WireFailure {
    /// `true` if the same request may succeed later. After other failures, the user has to act or the request has to change.
    var isWorthRetrying: Bool {
        switch self {
        case .couldNotResolveHost, .couldNotConnect, .proxyRefused, .timedOutConnecting, .stalled, .connectionLost, .badAnswer,
            .other, .authoritiesUnreadable, .requiredLineMissing:
            true
        // The request may succeed with another network or at another time. However, only some transfers are allowed to wait for
        // this.
        case .tlsUntrusted, .tooManyRedirects, .redirectToOtherScheme, .bodyTooLarge, .unsupportedURL,
            .stoppedByOwner, .cancelled:
            false
        }
    }

    /// `true` if the server may have received the request and carried it out.
    var mayHaveActed: Bool {
        switch self {
        case .couldNotResolveHost, .couldNotConnect, .proxyRefused, .timedOutConnecting, .tlsUntrusted, .authoritiesUnreadable,
            .requiredLineMissing, .unsupportedURL:
            false
        case .stalled, .connectionLost, .tooManyRedirects, .redirectToOtherScheme, .bodyTooLarge, .badAnswer,
            .stoppedByOwner, .cancelled, .other:
            true
        }
    }
}

extension TransferTrouble {
    /// The result of a check that did not find the file.
    package static let notOnServer = TransferTrouble(code: -1100, message: "The server does not have this file.")
    /// The result of a check if the server or the protocol does not show which files the server has.
    package static let notShownByServer = TransferTrouble(
        code: -1102, message: "The server does not show whether the server has this file.")
}
