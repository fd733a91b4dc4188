import Foundation

/// The rules for pauses before the next attempt, and the limits after which a transfer fails. All durations are in seconds.
package struct RetryPolicy: Sendable, Equatable {
    /// The first backoff (the pause after a failed attempt). Each attempt that received no byte doubles the backoff.
    package var base: Double
    /// The longest backoff.
    package var cap: Double
    /// The longest accepted `Retry-After`.
    package var maximumRetryAfter: Double
    /// The pause while the network or the host cannot be reached. When the network changes, the next attempt does not wait for
    /// the end of the pause.
    package var networkDelay: Double
    /// The pause while the server has no free space (status 507).
    package var fullDelay: Double
    /// The pause while a problem between this computer and the server is suspected, for example a captive portal. `nil` if the
    /// transfer fails immediately because of such a problem. When the network or the clock changes, the next attempt does not
    /// wait for the end of the pause.
    package var suspicionDelay: Double?

    package init(
        base: Double = 1, cap: Double = 900, maximumRetryAfter: Double = 21_600, networkDelay: Double = 10,
        fullDelay: Double = 1800
    ) {
        self.base = base
        self.cap = cap
        self.maximumRetryAfter = maximumRetryAfter
        self.networkDelay = networkDelay
        self.fullDelay = fullDelay
    }

    package static let standard = RetryPolicy()

    /// The number of 404 responses after which an upload fails. A single 404 is not sufficient, because a proxy may respond with
    /// 404 for some seconds while the server behind the proxy restarts.
    package static let maximumNotFound = 6

    /// The number of refusals without progress after which an upload fails. This limit applies to refusals that may concern only
    /// a single attempt.
    package static let maximumRefusals = 6

    /// Returns a pause with full jitter. The pause is any value between 0 and the exponential backoff. So clients that lost their
    /// connections at the same time do not all reconnect at the same time.
    /// - Parameter jitter: A random number in 0..<1 from the caller.
    package func backoff(attemptsWithoutProgress: Int, jitter: Double) -> Double {
        var ceiling = base
        for _ in 0..<max(0, attemptsWithoutProgress) where ceiling < cap { ceiling *= 2 }
        return min(ceiling, cap) * jitter
    }

    /// Returns the server's `Retry-After` or the backoff, whichever is longer. A server may send `Retry-After: 0` and continue to
    /// refuse. The backoff prevents a loop without pauses in this case.
    ///
    /// A server sends the same value to all clients that it refuses, so all clients would try again at the same time. To avoid
    /// this, an additional random time is added. This time is at most as long as the server's value and at most ``cap``. The sum
    /// is at most ``maximumRetryAfter``. The simulation `NoonHerd` shows the effect on a service that many clients use.
    package func delay(retryAfter: Double?, attemptsWithoutProgress: Int, jitter: Double) -> Double {
        let wish = retryAfter ?? 0
        let spread = min(wish + min(max(wish, 0), cap) * jitter, max(wish, maximumRetryAfter))
        return max(spread, backoff(attemptsWithoutProgress: attemptsWithoutProgress, jitter: jitter))
    }

    /// Returns the pause while no host can be reached. The pause is between `networkDelay` and twice `networkDelay`. If the
    /// backoff is longer, the pause is the backoff. While a machine is offline, its attempts do not make the backoff longer.
    package func networkPause(attemptsWithoutProgress: Int, jitter: Double) -> Double {
        max(networkDelay * (1 + jitter), backoff(attemptsWithoutProgress: attemptsWithoutProgress, jitter: jitter))
    }

    /// Returns the pause because of a suspected problem, for example a captive portal. Returns `nil` if no problem is suspected,
    /// or if the transfer does not wait for the end of the problem.
    package func suspicionPause(_ trouble: TransferTrouble, jitter: Double) -> Double? {
        trouble.suspicion == nil ? nil : suspicionDelay.map { $0 * (1 + jitter) }
    }

    /// Returns whether a transfer fails because it made no progress for too long. The time since the last progress is compared,
    /// because a laptop on a train makes many attempts in a short time. A clock that was set back does not cause a failure.
    package static func shouldGiveUp(lastProgressAt: Date, now: Date, resourceTimeout: Double) -> Bool {
        now.timeIntervalSince(lastProgressAt) >= resourceTimeout
    }

    /// Returns whether another attempt may receive a different response (RFC 9110 §15, RFC 6585). The statuses are 408, 429, 500,
    /// 502, 503 and 504.
    package static func isRetryable(status: Int) -> Bool {
        [408, 429, 500, 502, 503, 504].contains(status)
    }

    /// Returns whether another attempt may receive a different response. This rule is for requests whose response is not passed
    /// to an app. This rule also includes statuses of gateways (520 to 530 of Cloudflare), of locked files (423), and of
    /// connections (421 and 425). The statuses 501 and 505 are excluded, because they concern the request.
    static func mayPass(status: Int) -> Bool {
        [408, 421, 423, 425, 429].contains(status) || status >= 500 && status != 501 && status != 505 && status != 511
    }
}
