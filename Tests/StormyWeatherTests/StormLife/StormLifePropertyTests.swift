import Foundation
import TestSamples
import Testing

@testable import StormyWeather

/// Tests generated sequences of forecasts, warnings, reactions of the user, restarts and clock changes.
@Suite struct StormLifePropertyTests {
    /// - Returns: The violations that the judge finds.
    private func violations(seed: UInt64, _ bug: StormBug? = nil, trace: (String) -> Void = { _ in }) -> [String] {
        var random = SplitMix(seed: seed)
        var (subject, judge) = (StormSubject(bug), StormJudge())
        for _ in 0..<Int.random(in: 8...22, using: &random) {
            let step = StormStep.random(&random)
            let seconds = Double(Int.random(in: 0...6, using: &random)) * 900
            let input = subject.play(step, after: seconds)
            judge.see(input, subject.screen, now: subject.now, isAhead: subject.isAhead)
            trace(
                "\(subject.now.timeIntervalSince(StormSubject.base) / 3600) \(step): \(subject.screen.row.map { "\($0.state) \($0.text)" } ?? "-") photo \(String(describing: subject.screen.photo))"
            )
            if !judge.violations.isEmpty { break }
        }
        return judge.violations + (subject.records > 1 ? ["one storm has \(subject.records) records"] : [])
    }

    @Test func `ten thousand sequences show each storm once per level and call off only what was shown`() {
        var reported: Set<[String]> = []
        for seed in TableSample.rows(of: 0..<10_000, in: "storms") {
            let found = violations(seed: UInt64(seed))
            guard !found.isEmpty, reported.count < 5, reported.insert(found).inserted else { continue }
            var steps: [String] = []
            _ = violations(seed: UInt64(seed)) { steps.append($0) }
            Issue.record("seed \(seed): \(found)\n\(steps.joined(separator: "\n"))")
        }
    }

    @Test(arguments: StormBug.allCases) func `the judge finds each injected bug`(_ bug: StormBug) {
        let found = (0..<10_000).lazy.map { violations(seed: UInt64($0), bug) }.first { !$0.isEmpty }
        #expect(found != nil, "\(bug)")
    }
}
