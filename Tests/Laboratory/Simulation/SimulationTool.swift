import Foundation
import ProcessSupport
import Synchronization

/// The tool `simulate`, which runs many seeds and prints a summary. If a seed broke an invariant, the exit code is 1.
package enum SimulationTool {
    private static let usage = """
        usage: simulate [SEEDS] [--from SEED] [--month]
               simulate --matrix
               simulate --year-of-noons
               simulate --herd
               simulate --why [SEEDS] [--from SEED]

        Plays three days and a half of a virtual desktop for each seed and checks the invariants. A seed that broke one is
        printed with what led there; `simulate 1 --from SEED` plays it again, event for event. --month: thirty days for each, in
        which clocks, disks, servers, backups and people lie. --matrix: every cause in every
        state. --year-of-noons: how long the test kit takes for a year of daily launches.
        --why: a day of each seed, then each cause that `why` names is taken away, and left.
        --herd: what a weather service sees of a million installations at noon.

        """

    /// Returns the exit code. The exit code is 0 if no invariant is broken, 1 if an invariant is broken, and 64 if the command
    /// line is invalid.
    package static func run(_ arguments: [String]) async -> Int32 {
        var (count, first, length, isWhy) = (100, UInt64(1), Simulation.Length.days, false)
        var rest = arguments[...]
        while let word = rest.popFirst() {
            if word == "--year-of-noons" { return await measureYear() }
            if word == "--matrix" { return playMatrix() }
            if word == "--herd" { return playHerd() }
            if word == "--help" {
                print(usage, terminator: "")
                return 0
            }
            if word == "--why" {
                isWhy = true
            } else if word == "--month" {
                length = .month
            } else if word == "--from", let value = rest.popFirst().flatMap(UInt64.init) {
                first = value
            } else if let value = Int(word), value > 0 {
                count = value
            } else {
                return refuse()
            }
        }
        let (end, isTooMany) = first.addingReportingOverflow(UInt64(count))
        guard !isTooMany else { return refuse() }
        if isWhy { return proveWhy(first..<end) }
        let started = ContinuousClock.now
        let played = length
        let results = play(first..<end) { try Simulation(seed: $0, played).run() }
        let seconds = (ContinuousClock.now - started) / .seconds(1)
        let tally = results.tally
        return results.report(
            "\(count) \(length == .month ? "months" : "seeds") from \(first) in \(Int(seconds)) s: \(tally.launches) launches, \(tally.agents) agents, "
                + "\(tally.absences) absences, \(tally.transfers) transfers, \(tally.notices) notices, \(tally.moments) moments",
            held: "every invariant held", broken: "seeds broke one")
    }

    private static func refuse() -> Int32 {
        StandardError.write(usage)
        return 64
    }

    /// Prints the result of each cause in each state. If the promised result differs, also prints the promised result.
    private static func playMatrix() -> Int32 {
        var broken = 0
        for state in MatrixState.allCases {
            print(state.rawValue)
            for cause in MatrixCause.allCases {
                let cell = MatrixCell(state, cause)
                let seen: String
                do { seen = try cell.play() } catch { seen = "\(error)" }
                if seen != cell.promised { broken += 1 }
                let mark = seen == cell.promised ? "✓" : "✗"
                print("  \(mark) \(cause.rawValue): \(seen)" + (seen == cell.promised ? "" : "; promised: \(cell.promised)"))
            }
        }
        print(broken == 0 ? "every promise is kept" : "\(broken) promises are broken")
        return broken == 0 ? 0 : 1
    }

    /// Prints the results of `NoonHerd` as the table of the documentation.
    private static func playHerd() -> Int32 {
        print(
            "| Longest delay | Header of the 503 | Requests in the busiest second | Requests | Refused requests "
                + "| Last forecast after noon | Installations without a forecast |")
        print("|---|---|---|---|---|---|---|")
        for spread in [0.0, 120, 900] {
            for retryAfter in [nil, 60, 600] as [Double?] {
                let outcome = NoonHerd(spread: spread, retryAfter: retryAfter).play()
                print(
                    "| \(Int(spread)) s | \(retryAfter.map { "Retry-After: \(Int($0))" } ?? "nothing") | \(outcome.peak) | \(outcome.requests) | "
                        + "\(outcome.refused) | \(outcome.lastAnswer) s | \(outcome.givenUp) |")
            }
        }
        return 0
    }

    /// Measures the time that the test kit needs for a year of daily launches, each with its handler.
    private static func measureYear() async -> Int32 {
        do {
            let (noons, seconds) = try await YearOfNoons.play()
            print("a year of noons: \(noons.count) launches in \(String(format: "%.2f", seconds)) s")
            return noons.count == 365 ? 0 : 1
        } catch {
            print("\(error)")
            return 1
        }
    }

    /// Proves the causes that `why` reports. Each cause is removed in one run and kept in another run.
    private static func proveWhy(_ seeds: Range<UInt64>) -> Int32 {
        let results = play(seeds) { try WhyProof.play(seed: $0) }
        let tally = results.tally
        let causes = tally.causes.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
        return results.report(
            "why, \(seeds.count) seeds from \(seeds.lowerBound), \(Int(tally.days)) days: \(tally.questions) requests that did not run "
                + "(\(causes)), \(tally.joined) for several causes",
            held: "without them all ran, with one of them none", broken: "seeds show another")
    }

    private struct Results<Tally: Sendable>: Sendable {
        var failures: [Simulation.Failure] = []
        var tally: Tally

        /// Prints the first failures and the summary. Returns the exit code.
        func report(_ summary: String, held: String, broken: String) -> Int32 {
            for failure in failures.sorted(by: { $0.seed < $1.seed }).prefix(5) { print(failure) }
            let seeds = failures.map { "\($0.seed)" }.sorted().prefix(20).joined(separator: " ")
            print(summary + "; " + (failures.isEmpty ? held : "\(failures.count) \(broken): \(seeds)"))
            return failures.isEmpty ? 0 : 1
        }
    }

    private static func play<Tally: SimulationTally>(
        _ seeds: Range<UInt64>, _ one: @Sendable (UInt64) throws -> Tally
    ) -> Results<Tally> {
        let results = Mutex(Results(tally: Tally()))
        let next = Mutex(seeds.lowerBound)
        let cores = ProcessInfo.processInfo.activeProcessorCount
        DispatchQueue.concurrentPerform(iterations: cores) { _ in
            while true {
                let seed = next.withLock { next -> UInt64? in
                    guard next < seeds.upperBound else { return nil }
                    defer { next += 1 }
                    return next
                }
                guard let seed else { return }
                do {
                    let tally = try one(seed)
                    results.withLock { $0.tally = $0.tally + tally }
                } catch let failure as Simulation.Failure {
                    results.withLock { $0.failures.append(failure) }
                } catch {
                    let failure = Simulation.Failure(seed: seed, broken: ["\(error)"], transcript: [])
                    results.withLock { $0.failures.append(failure) }
                }
            }
        }
        return results.withLock { $0 }
    }
}

/// The sum of the results of many seeds.
protocol SimulationTally: Sendable {
    init()
    static func + (one: Self, other: Self) -> Self
}

extension Simulation.Tally: SimulationTally { package init() { self.init(launches: 0) } }
extension WhyProof.Tally: SimulationTally {}
