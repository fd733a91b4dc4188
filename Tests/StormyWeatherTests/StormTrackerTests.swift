import Foundation
import StormyWeather
import Testing

private let noon = Date(timeIntervalSince1970: 1_770_465_600)

private func window(_ from: Double, _ until: Double) -> StormWindow {
    StormWindow(from: noon + from * 3600, until: noon + until * 3600)
}

private func seen(_ windows: StormWindow...) -> Assessment { seen(windows) }

private func seen(_ windows: [StormWindow]) -> Assessment {
    Assessment(
        verdict: windows.isEmpty ? .calm : .stormy,
        reasons: windows.map { StormReason(kind: .thunderstorm, peak: 95, from: $0.from, until: $0.until) })
}

private func apply(_ decision: StormDecision, to storms: [KnownStorm]) -> [KnownStorm] {
    var storms = storms
    for id in decision.close {
        guard let index = storms.firstIndex(where: { $0.id == id }) else { continue }
        storms[index].isClosed = true
    }
    for change in decision.changes {
        switch change {
        case .open(let window):
            storms.append(KnownStorm(id: (storms.map(\.id).max() ?? 0) + 1, window: window, told: true))
        case .extend(let id, let window):
            guard let index = storms.firstIndex(where: { $0.id == id }) else { continue }
            storms[index].window = window
            storms[index].isClosed = false
        }
    }
    return storms
}

@Suite struct StormTrackerTests {
    @Test func sixHoursApartIsOneStorm() {
        #expect(StormWindow.merge([window(0, 1), window(7, 8)]) == [window(0, 8)])
        #expect(StormWindow.merge([window(0, 1), window(7.01, 8)]) == [window(0, 1), window(7.01, 8)])
        #expect(StormWindow.merge([window(0, 10), window(2, 3)]) == [window(0, 10)])
        #expect(StormWindow.merge([]).isEmpty)
    }

    @Test func mergeHoldsItsProperties() {
        for _ in 0..<2000 {
            let windows = (0..<Int.random(in: 0...8)).map { _ in
                let from = Double(Int.random(in: 0...72))
                return window(from, from + Double(Int.random(in: 0...9)))
            }
            let merged = StormWindow.merge(windows)
            #expect(StormWindow.merge(merged) == merged, "idempotent")
            #expect(StormWindow.merge(windows.shuffled() + windows) == merged, "order and repetition don't matter")
            for (left, right) in zip(merged, merged.dropFirst()) {
                #expect(right.from.timeIntervalSince(left.until) > StormWindow.mergeGap)
            }
            for one in windows {
                #expect(merged.filter { $0.from <= one.from && one.until <= $0.until }.count == 1)
            }
        }
    }

    @Test func opensOnceAndFollows() {
        let first = StormTracker.decide(existing: [], seen: seen(window(5, 8)), now: noon)
        #expect(first == StormDecision(changes: [.open(window(5, 8))]))
        let known = [KnownStorm(id: 7, window: window(5, 8), told: true)]
        #expect(StormTracker.decide(existing: known, seen: seen(window(5, 8)), now: noon) == .none)
        #expect(
            StormTracker.decide(existing: known, seen: seen(window(13, 15)), now: noon)
                == StormDecision(changes: [.extend(id: 7, window(13, 15))]), "shifted: the same storm")
        #expect(
            StormTracker.decide(existing: known, seen: seen(window(7, 9)), now: noon + 6 * 3600)
                == StormDecision(changes: [.extend(id: 7, window(5, 9))]), "a beginning that is past stays")
        #expect(
            StormTracker.decide(existing: known, seen: seen(window(15, 16)), now: noon)
                == StormDecision(changes: [.open(window(15, 16))]), "more than six hours later: another one")
    }

    @Test func closesWhatIsOver() {
        let known = [KnownStorm(id: 1, window: window(-3, 0), told: true), KnownStorm(id: 2, window: window(9, 10), told: false)]
        #expect(StormTracker.decide(existing: known, seen: seen(), now: noon) == StormDecision(close: [1]))
        #expect(StormTracker.decide(existing: known, seen: Assessment(verdict: .unknown(why: "offline")), now: noon - 1) == .none)
    }

    @Test func aStormThatComesBackIsNotToldTwice() {
        let closed = KnownStorm(id: 1, window: window(-3, 0), told: true, isClosed: true)
        #expect(
            StormTracker.decide(existing: [closed], seen: seen(window(4, 5)), now: noon + 1)
                == StormDecision(changes: [.extend(id: 1, window(-3, 5))]))
        #expect(StormTracker.decide(existing: [closed], seen: seen(), now: noon + 1) == .none)
    }

    @Test func aBridgeJoinsTwoStormsInTheToldOne() {
        let known = [KnownStorm(id: 1, window: window(2, 4), told: false), KnownStorm(id: 2, window: window(14, 16), told: true)]
        #expect(
            StormTracker.decide(existing: known, seen: seen(window(3, 15)), now: noon)
                == StormDecision(changes: [.extend(id: 2, window(3, 15))], close: [1]))
    }

    @Test func decisionsHoldTheirProperties() {
        for _ in 0..<500 {
            var storms: [KnownStorm] = []
            var now = noon
            for _ in 0..<6 {
                now += Double(Int.random(in: 1...12)) * 3600
                let base = now.timeIntervalSince(noon) / 3600
                let forecast = seen(
                    (0..<Int.random(in: 0...3)).map { _ in
                        let from = base + Double(Int.random(in: 0...23))
                        return window(from, from + Double(Int.random(in: 1...4)))
                    })
                let decision = StormTracker.decide(existing: storms, seen: forecast, now: now)
                #expect(StormTracker.decide(existing: storms.shuffled(), seen: forecast, now: now) == decision)
                storms = apply(decision, to: storms)
                #expect(StormTracker.decide(existing: storms, seen: forecast, now: now) == .none, "asking again changes nothing")
                let open = storms.filter { !$0.isClosed }
                #expect(open.allSatisfy { $0.window.until > now })
                for shown in forecast.windows {
                    let holders = open.filter { $0.window.from <= shown.from && shown.until <= $0.window.until }
                    #expect(holders.count == 1, "each storm seen has exactly one record")
                }
            }
        }
    }
}
