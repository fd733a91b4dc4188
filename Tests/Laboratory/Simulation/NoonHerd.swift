import TransferMachines

/// What one weather service sees when a very large number of installations check at noon, each in its own zone, with the pauses that the
/// engine really makes.
package struct NoonHerd: Sendable {
    /// How many there are, equally in 24 zones that are an hour apart.
    package var installations = 1_000_000
    /// Seconds over which the installations of a zone are spread.
    package var spread: Double
    /// Requests per second that are answered; the others get 503.
    package var capacity = 200
    /// Seconds that a 503 asks for; `nil`: it says nothing.
    package var retryAfter: Double?
    package var seed: UInt64 = 1

    package init(spread: Double, retryAfter: Double?) { (self.spread, self.retryAfter) = (spread, retryAfter) }

    package struct Outcome: Sendable, Equatable {
        /// Requests in the busiest second of the day.
        package var peak = 0
        package var requests = 0
        package var refused = 0
        /// Seconds after its noon at which the last of a zone had its answer.
        package var lastAnswer = 0
        /// Those that had none within the two hours for which a check waits.
        package var givenUp = 0
    }

    private static let zones = 24
    /// Seconds for which an answer is waited for (``WeatherSession``).
    private static let patience = 7_200
    /// Clocks that agree to within a second, and processes that start within one.
    private static let scatter = 1.0

    /// Cost: about a second for a million, built for release.
    package func play() -> Outcome {
        let (dice, policy) = (Dice(seed: seed), RetryPolicy.standard)
        var outcome = Outcome()
        // Of each second of the day those that ask in it, by how often they asked before and by the second of their noon.
        var asking = [[(attempts: Int, noon: Int)]](repeating: [], count: Self.zones * 3_600 + Self.patience + 1)
        for number in 0..<installations {
            let noon = number % Self.zones * 3_600
            asking[noon + Int(dice.between(0, spread + Self.scatter))].append((0, noon))
        }
        for second in asking.indices where !asking[second].isEmpty {
            let now = asking[second]
            asking[second] = []
            outcome.peak = max(outcome.peak, now.count)
            outcome.requests += now.count
            for (index, one) in now.enumerated() {
                // Whoever comes first within a second is answered.
                if index < capacity {
                    outcome.lastAnswer = max(outcome.lastAnswer, second - one.noon)
                    continue
                }
                outcome.refused += 1
                let pause = policy.delay(retryAfter: retryAfter, attemptsWithoutProgress: one.attempts, jitter: dice.unit)
                let next = second + max(1, Int(pause.rounded(.up)))
                if next - one.noon > Self.patience {
                    outcome.givenUp += 1
                } else {
                    asking[next].append((one.attempts + 1, one.noon))
                }
            }
        }
        return outcome
    }
}
