import TransferMachines

/// Simulates the requests to one weather service if very many installations check at noon. Each installation uses the noon of its
/// time zone. The simulation uses the real code for the pauses between retries.
package struct NoonHerd: Sendable {
    /// The number of installations. The installations are distributed equally over 24 time zones, which are an hour apart.
    package var installations = 1_000_000
    /// The number of seconds over which the requests of a time zone are spread.
    package var spread: Double
    /// The number of requests per second that the service can answer. All other requests receive the status 503.
    package var capacity = 200
    /// The seconds in the header `Retry-After` of a response 503; `nil` if the response has no such header.
    package var retryAfter: Double?
    package var seed: UInt64 = 1

    package init(spread: Double, retryAfter: Double?) { (self.spread, self.retryAfter) = (spread, retryAfter) }

    package struct Outcome: Sendable, Equatable {
        /// The number of requests in the second of the day with the most requests.
        package var peak = 0
        package var requests = 0
        package var refused = 0
        /// The number of seconds from noon until the last installation of a time zone has received its response.
        package var lastAnswer = 0
        /// The number of installations that receive no response within two hours. A check waits for a response for at most two
        /// hours.
        package var givenUp = 0
    }

    private static let zones = 24
    /// The number of seconds that a check waits for a response (``WeatherSession``).
    private static let patience = 7_200
    /// The number of seconds by which clocks and the start times of processes differ.
    private static let scatter = 1.0

    /// Simulates one day. In a release build, this takes about a second for a million installations.
    package func play() -> Outcome {
        let (dice, policy) = (Dice(seed: seed), RetryPolicy.standard)
        var outcome = Outcome()
        // The requests of each second of the day. For each request, the entry contains the number of earlier attempts of the
        // installation, and the time of its noon in seconds.
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
                // The first requests of a second receive a response.
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
