import Foundation

/// How long to wait before the next attempt, and when to stop trying. All durations are seconds.
package struct RetryPolicy: Sendable, Equatable {
    /// The first backoff; it doubles with every attempt that brought no byte.
    package var base: Double
    /// The longest backoff.
    package var cap: Double
    /// The longest `Retry-After` that is believed.
    package var maximumRetryAfter: Double
    /// The pause while the network or the host cannot be reached. The owner also tries when the network changes.
    package var networkDelay: Double
    /// The pause while the server has no room left (507).
    package var fullDelay: Double
    /// The pause while something else may stand in the server's place; `nil`: that is a failure at once. The owner also tries when the
    /// network or the clock changes.
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

    /// Responses 404 after which an upload fails. A proxy whose server restarts answers so for some seconds.
    package static let maximumNotFound = 6

    /// Refusals without progress after which an upload fails, if each of them may be about one attempt.
    package static let maximumRefusals = 6

    /// Full jitter: anywhere between nothing and the exponential, so that clients a server dropped together do not
    /// come back together.
    /// - Parameter jitter: 0..<1, the caller's random number.
    package func backoff(attemptsWithoutProgress: Int, jitter: Double) -> Double {
        var ceiling = base
        for _ in 0..<max(0, attemptsWithoutProgress) where ceiling < cap { ceiling *= 2 }
        return min(ceiling, cap) * jitter
    }

    /// A server's own wish, or the backoff. The longer of the two: `Retry-After: 0` from a server that goes on
    /// refusing would otherwise be a loop without a pause.
    ///
    /// A server wishes the same of all whom it refuses, and would have them all back in one moment: they come spread over as long again,
    /// and over no more than ``cap``, never beyond ``maximumRetryAfter``. `NoonHerd` shows what that is to a service that many ask.
    package func delay(retryAfter: Double?, attemptsWithoutProgress: Int, jitter: Double) -> Double {
        let wish = retryAfter ?? 0
        let spread = min(wish + min(max(wish, 0), cap) * jitter, max(wish, maximumRetryAfter))
        return max(spread, backoff(attemptsWithoutProgress: attemptsWithoutProgress, jitter: jitter))
    }

    /// The pause while nothing can be reached: at least `networkDelay`, spread over twice that. It does not depend
    /// on counted attempts, which do not grow while a machine is offline.
    package func networkPause(attemptsWithoutProgress: Int, jitter: Double) -> Double {
        max(networkDelay * (1 + jitter), backoff(attemptsWithoutProgress: attemptsWithoutProgress, jitter: jitter))
    }

    /// `nil`: it is not waited for.
    package func suspicionPause(_ trouble: TransferTrouble, jitter: Double) -> Double? {
        trouble.suspicion == nil ? nil : suspicionDelay.map { $0 * (1 + jitter) }
    }

    /// Giving up is a matter of time without progress, never of a number of attempts: a laptop that sleeps on a
    /// train makes many attempts. A clock stepped back never gives up.
    package static func shouldGiveUp(lastProgressAt: Date, now: Date, resourceTimeout: Double) -> Bool {
        now.timeIntervalSince(lastProgressAt) >= resourceTimeout
    }

    /// Answers that another attempt may change (RFC 9110 §15, RFC 6585): 408, 429, 500, 502, 503, 504.
    package static func isRetryable(status: Int) -> Bool {
        [408, 429, 500, 502, 503, 504].contains(status)
    }

    /// Responses that another attempt may change, if no app waits for the response: also those of gateways (520 to 530 of Cloudflare), locks and
    /// connections. 501 and 505 are about the request.
    static func mayPass(status: Int) -> Bool {
        [408, 421, 423, 425, 429].contains(status) || status >= 500 && status != 501 && status != 505 && status != 511
    }
}
