import Foundation
import Testing

@testable import StormyWeather

private let noon = Date(timeIntervalSince1970: 1_770_465_600)

private func window(_ from: Double, _ until: Double) -> StormWindow {
    StormWindow(from: noon + from * 3600, until: noon + until * 3600)
}

private func seen(_ windows: StormWindow...) -> StormCheckData { seen(windows, now: noon) }

private func seen(_ windows: [StormWindow], now: Date) -> StormCheckData {
    StormCheckData(
        Assessment(
            verdict: windows.isEmpty ? .calm : .stormy,
            reasons: windows.map { StormReason(kind: .thunderstorm, peak: 95, from: $0.from, until: $0.until) }),
        rule: StormRule(), now: now)
}

/// Returns a storm with one window of time. If `isShown` is `true`, the storm has alerted.
private func storm(_ id: Int64, _ window: StormWindow, isShown: Bool = true) -> (id: Int64, life: StormLife) {
    let reason = StormReason(kind: .thunderstorm, peak: 95, from: window.from, until: window.until)
    var life = StormLife(window: window, reasons: [reason])
    if isShown { _ = life.handle(.checked(StormNotificationState(.none), now: window.from - 86_400)) }
    return (id, life)
}

private func changes(_ known: [(id: Int64, life: StormLife)], _ look: StormCheckData) -> [String] {
    StormLife.follow(known, look).map { change in
        func hours(_ window: StormWindow) -> String {
            "\(window.from.timeIntervalSince(noon) / 3600)...\(window.until.timeIntervalSince(noon) / 3600)"
        }
        return switch change {
        case .open(let life): "open \(hours(life.window))"
        case .change(let id, let life): life.outlook == .joined ? "\(id) joined" : "\(id) \(hours(life.window))"
        }
    }.sorted()
}

/// Tests which storm of a new forecast is recognized as a known storm.
@Suite struct StormMatchingTests {
    @Test func `windows within six hours are one storm`() {
        #expect(StormWindow.merge([window(0, 1), window(7, 8)]) == [window(0, 8)])
        #expect(StormWindow.merge([window(0, 1), window(7.01, 8)]) == [window(0, 1), window(7.01, 8)])
        #expect(StormWindow.merge([window(0, 10), window(2, 3)]) == [window(0, 10)])
        #expect(StormWindow.merge([]).isEmpty)
    }

    @Test func `merged windows do not depend on order or repetition`() {
        for _ in 0..<2000 {
            let windows = (0..<Int.random(in: 0...8)).map { _ in
                let from = Double(Int.random(in: 0...72))
                return window(from, from + Double(Int.random(in: 0...9)))
            }
            let merged = StormWindow.merge(windows)
            #expect(StormWindow.merge(merged) == merged)
            #expect(StormWindow.merge(windows.shuffled() + windows) == merged)
            for (left, right) in zip(merged, merged.dropFirst()) {
                #expect(right.from.timeIntervalSince(left.until) > StormWindow.mergeGap)
            }
            for one in windows { #expect(merged.filter { $0.from <= one.from && one.until <= $0.until }.count == 1) }
        }
    }

    @Test func `a storm that moves keeps its record`() {
        let known = [storm(7, window(5, 8))]
        #expect(changes([], seen(window(5, 8))) == ["open 5.0...8.0"])
        #expect(changes(known, seen(window(5, 8))) == [])
        #expect(changes(known, seen(window(13, 15))) == ["7 13.0...15.0"])
        #expect(
            changes(known, seen([window(7, 9)], now: noon + 6 * 3600)) == ["7 5.0...9.0"],
            "a beginning in the past does not change")
        #expect(changes(known, seen(window(15, 16))) == ["open 15.0...16.0"], "more than six hours later")
    }

    @Test func `two shown storms become one`() {
        let known = [storm(1, window(2, 4), isShown: false), storm(2, window(14, 16))]
        #expect(changes(known, seen(window(3, 15))) == ["1 joined", "2 3.0...15.0"])
        var joined = storm(1, window(2, 4)).life
        _ = joined.handle(.joined)
        #expect(joined.handle(.checked(StormNotificationState(.visible), now: noon)) == [.withdraw, .closePhotoRequest])
        #expect(joined.handle(.checked(StormNotificationState(.withdrawn), now: noon)) == [])
    }

    @Test func `following the same look again changes nothing`() {
        for _ in 0..<500 {
            var storms: [Int64: StormLife] = [:]
            var now = noon
            for _ in 0..<6 {
                now += Double(Int.random(in: 1...12)) * 3600
                let base = now.timeIntervalSince(noon) / 3600
                let look = seen(
                    (0..<Int.random(in: 0...3)).map { _ in
                        let from = base + Double(Int.random(in: 0...23))
                        return window(from, from + Double(Int.random(in: 1...4)))
                    }, now: now)
                func known() -> [(id: Int64, life: StormLife)] {
                    storms.filter { $0.value.window.until > now - 12 * 3600 }.map { (id: $0.key, life: $0.value) }.shuffled()
                }
                for change in StormLife.follow(known(), look) {
                    switch change {
                    case .open(let life): storms[Int64(storms.count + 1)] = life
                    case .change(let id, let life): storms[id] = life
                    }
                }
                #expect(StormLife.follow(known(), look) == [])
                for id in storms.keys { _ = storms[id]?.handle(.checked(StormNotificationState(.visible), now: now)) }
                for shown in look.assessment.windows {
                    let holders = storms.values.filter {
                        $0.isOpen(now: now) && $0.window.from <= shown.from && shown.until <= $0.window.until
                    }
                    #expect(holders.count == 1, "each storm seen has exactly one record")
                }
            }
        }
    }
}

/// The state of one storm over several checks. The gusts last from 4 to 7 hours after noon.
private struct Story {
    var now = noon
    var life: StormLife?
    var commands: [StormLife.Command] = []
    var memory: StormLife.Memory { life?.memory ?? StormLife.Memory() }

    /// Runs a check with a forecast of 40 hours.
    mutating func check(
        _ gusts: Double?, _ state: StormNotificationState.State = .visible, from: Int = 4, warning: CAPSeverity? = nil,
        cancelled: Bool = false,
        age: Double = 0, hours: Int = 40, hasPhoto: Bool = false
    ) {
        let forecast = Forecast(
            hours: (-1..<hours).map { hour in
                let isStorm = (from..<from + 3).contains(hour)
                return ForecastHour(
                    start: noon + Double(hour) * 3600, weatherCode: 3, precipitationMM: 0, gustsKMH: isStorm ? gusts : 20)
            })
        let alerts =
            warning.map { [Self.warning("w", "Gale", $0)] }
            ?? (cancelled ? [AlertEvent(messages: ["w"], state: .cancelled, infos: [])] : [])
        look(forecast, alerts, age: age)
        answer(state, hasPhoto: hasPhoto)
    }

    static func warning(
        _ identifier: String, _ event: String, _ severity: CAPSeverity?, updating earlier: String? = nil,
        hazard: AlertHazard = .wind
    ) -> AlertEvent {
        let info = AlertInfo(
            event: event, hazard: hazard, severity: severity, from: noon + 4 * 3600, until: noon + 7 * 3600, issuer: "X",
            areas: []
        )
        return AlertEvent(messages: [identifier] + (earlier.map { [$0] } ?? []), state: .standing, infos: [info])
    }

    /// Runs a check with a calm forecast. During this check, some official warnings are valid, and other official warnings are
    /// cancelled.
    mutating func warn(
        _ state: StormNotificationState.State, _ standing: [AlertEvent], cancelled: [String] = [], memory: StormLife.Memory? = nil
    ) {
        let calm = Forecast(
            hours: (-1..<40).map {
                ForecastHour(start: noon + Double($0) * 3600, weatherCode: 3, precipitationMM: 0, gustsKMH: 20)
            })
        look(calm, standing + cancelled.map { AlertEvent(messages: [$0], state: .cancelled, infos: []) })
        answer(state, memory: memory)
    }

    private mutating func look(_ forecast: Forecast, _ alerts: [AlertEvent], age: Double = 0) {
        let rule = StormRule()
        let look = StormCheckData(
            rule.assess(forecast, alerts: alerts, now: now), rule: rule, forecast: forecast, fetchedAt: now - age, now: now)
        for change in StormLife.follow(life.map { [(id: Int64(1), life: $0)] } ?? [], look) {
            switch change {
            case .open(let new), .change(_, let new): life = new
            }
        }
    }

    /// Runs a check without a forecast.
    mutating func answer(_ state: StormNotificationState.State, hasPhoto: Bool = false, memory: StormLife.Memory? = nil) {
        commands = life?.handle(.checked(StormNotificationState(state, memory: memory, hasPhoto: hasPhoto), now: now)) ?? []
    }

    static func shown(_ gusts: Double = 90) -> Story {
        var story = Story()
        story.check(gusts, .none)
        story.answer(.visible)
        return story
    }
}

/// Tests the rules of storms. Each rule is one row of the table on the documentation page.
@Suite struct StormLifeTests {
    private struct Row {
        let before: String
        let event: String
        let commands: [StormLife.Command]
    }

    private static func row(
        _ before: String, _ event: String, _ story: Story, _ change: (inout Story) -> Void, _ expected: StormLife.Command...
    ) -> Row {
        var story = story
        change(&story)
        #expect(story.commands == expected, "\(before): \(event)")
        return Row(before: before, event: event, commands: story.commands)
    }

    private static func calledOff(returns: Int = 0) -> Story {
        var story = Story.shown()
        story.check(20)
        for _ in 0..<returns {
            story.check(90)
            story.check(20)
        }
        return story
    }

    private static let rows: [Row] = [
        row("unknown", "a forecast or a warning shows the storm", Story(), { $0.check(90, .none) }, .alert, .openPhotoRequest),
        row("on the screen", "the text of the notification changes", .shown(), { $0.check(95) }, .update),
        row("dismissed", "the text of the notification changes", .shown(), { $0.check(95, .dismissed) }),
        row("snoozed", "the text of the notification changes", .shown(), { $0.check(95, .snoozed) }, .update),
        row("on the screen", "a higher level", .shown(), { $0.check(110) }, .alert, .openPhotoRequest),
        row("dismissed", "a higher level", .shown(), { $0.check(110, .dismissed) }, .alert, .openPhotoRequest),
        row("snoozed", "a higher level, and a photo was given", .shown(), { $0.check(150, .snoozed, hasPhoto: true) }, .alert),
        row("dismissed", "a lower level", .shown(150), { $0.check(90, .dismissed) }),
        row(
            "dismissed", "the first official warning", .shown(110), { $0.check(110, .dismissed, warning: .severe) }, .alert,
            .openPhotoRequest),
        row("dismissed", "a warning below `alert_severity`", .shown(), { $0.check(90, .dismissed, warning: .moderate) }),
        row(
            "dismissed at level extreme, and its warning is cancelled", "an extreme warning of another kind", dismissedTornado,
            { $0.warn(.dismissed, [flood, hurricane], cancelled: ["tornado"]) }, .alert, .openPhotoRequest),
        row(
            "dismissed at level extreme, and its warning is cancelled", "the same extreme warning again", dismissedTornado,
            { $0.warn(.dismissed, [flood, Story.warning("tornado 2", "Tornado", .extreme)], cancelled: ["tornado"]) }),
        row(
            "dismissed at level extreme, and its warning is in force", "an extreme warning of another kind", dismissedTornado,
            { $0.warn(.dismissed, [flood, hurricane, tornado]) }),
        row(
            "on the screen, for a warning", "a warning of another hazard", shownWind, { $0.warn(.visible, [wind, flood]) },
            .update),
        row(
            "dismissed, shown for a warning", "a warning of another hazard", shownWind, { $0.warn(.dismissed, [wind, flood]) },
            .alert, .openPhotoRequest),
        row(
            "snoozed, shown for a warning", "a warning of another hazard", shownWind, { $0.warn(.snoozed, [wind, flood]) },
            .alert, .openPhotoRequest),
        row(
            "dismissed, shown for a warning", "another warning of the same hazard and level", shownWind,
            { $0.warn(.dismissed, [wind, Story.warning("gale", "Gale", .severe)]) }),
        row(
            "dismissed", "the storm starts 3 h earlier", .shown(), { $0.check(90, .dismissed, from: 1) }, .alert,
            .openPhotoRequest),
        row("dismissed", "the storm starts 2 h earlier", .shown(), { $0.check(90, .dismissed, from: 2) }),
        row("on the screen", "a fresh forecast: 80 to 100 % of the limit", .shown(), { $0.check(62) }, .update),
        row(
            "on the screen", "a fresh forecast: below 80 % of the limit", .shown(), { $0.check(59) }, .callOff, .closePhotoRequest
        ),
        row(
            "waits, and was not seen by the user", "a fresh forecast: 80 to 100 % of the limit", waiting,
            { $0.check(62, .waiting) }, .withdraw,
            .closePhotoRequest),
        row(
            "snoozed", "a fresh forecast: below 80 % of the limit", .shown(), { $0.check(59, .snoozed) }, .withdraw,
            .closePhotoRequest),
        row("dismissed", "a fresh forecast: below 80 % of the limit", .shown(), { $0.check(59, .dismissed) }, .closePhotoRequest),
        row(
            "waits, and was not seen by the user", "a fresh forecast: below 80 % of the limit", waiting,
            { $0.check(59, .waiting) }, .withdraw,
            .closePhotoRequest),
        row(
            "on the screen", "a fresh forecast: below 80 % of the limit, and a warning is in force", .shown(),
            { $0.check(59, warning: .severe) }, .alert,
            .openPhotoRequest),
        row(
            "on the screen", "a forecast that is four hours old: below 80 % of the limit", .shown(),
            { $0.check(59, age: 4 * 3600) }, .update),
        row(
            "on the screen", "a forecast that ends before the storm: below 80 % of the limit", .shown(),
            { $0.check(59, hours: 6) }, .update),
        row("on the screen", "a forecast without gusts", .shown(), { $0.check(nil) }, .update),
        row("on the screen", "no data", .shown(), { $0.answer(.visible) }, .update),
        row("called off", "the storm returns", calledOff(), { $0.check(90) }, .alert, .openPhotoRequest),
        row(
            "called off three times in 24 h", "the storm returns", calledOff(returns: 3), { $0.check(90) }, .showSilently,
            .openPhotoRequest),
        row(
            "called off three times in 24 h", "the storm returns at a level that was not shown yet", calledOff(returns: 3),
            { $0.check(110) },
            .alert, .openPhotoRequest),
        row("called off", "a fresh forecast: 80 to 100 % of the limit", calledOff(), { $0.check(62) }),
        row(
            "on the screen", "the storm ends", .shown(), { ($0.now = noon + 7 * 3600, $0.answer(.ended)).1 }, .withdraw,
            .closePhotoRequest),
        row("dismissed", "the storm ends", .shown(), { ($0.now = noon + 7 * 3600, $0.answer(.dismissed)).1 }, .closePhotoRequest),
        row(
            "closed while the clock was fast", "the clock is correct again", ahead,
            { ($0.now = noon, $0.answer(.withdrawn)).1 }, .showSilently, .openPhotoRequest),
        row(
            "shown, but the process ended before it stored that the storm was shown", "the next check", Story.shown().forgotten,
            { $0.answer(.visible, memory: Story.shown().memory) }, .openPhotoRequest, .update),
        row(
            "withdrawn by `stormy quit` before the user saw the notification", "the next check", waiting, { $0.answer(.unseen) },
            .alert,
            .openPhotoRequest),
    ]

    private static let tornado = Story.warning("tornado", "Tornado", .extreme)
    private static let hurricane = Story.warning("hurricane", "Hurricane", .extreme)
    private static let flood = Story.warning("flood", "Flood", .severe, hazard: .flood)

    private static let wind = Story.warning("wind", "Wind", .severe)

    private static var shownWind: Story {
        var story = Story()
        story.warn(.none, [wind])
        story.warn(.visible, [wind])
        return story
    }

    private static var dismissedTornado: Story {
        var story = Story()
        story.warn(.none, [tornado])
        story.warn(.visible, [tornado])
        story.warn(.dismissed, [tornado, flood])
        return story
    }

    private static var waiting: Story {
        var story = Story()
        story.check(90, .none)
        return story
    }

    private static var ahead: Story {
        var story = Story.shown()
        story.now = noon + 365 * 86_400
        story.answer(.visible)
        return story
    }

    /// Compares the page in the documentation with the rules. If `WRITE_TABLES=1` is set, the test writes the page.
    @Test func `the page lists what each rule does`() throws {
        let names: [StormLife.Command: String] = [
            .alert: "alerts", .showSilently: "is shown silently", .update: "the text is updated silently",
            .callOff: "becomes \"No longer expected\", passive and without a sound", .withdraw: "is withdrawn",
            .openPhotoRequest: "open", .closePhotoRequest: "closed if it has no photo",
        ]
        let rows = Self.rows.map { row in
            let photo: Set<StormLife.Command> = [.openPhotoRequest, .closePhotoRequest]
            func words(_ commands: [StormLife.Command]) -> String { commands.compactMap { names[$0] }.joined(separator: ", ") }
            return
                "| \(row.before) | \(row.event) | \(words(row.commands.filter { !photo.contains($0) })) | \(words(row.commands.filter(photo.contains))) |"
        }
        let page = """
            # What becomes of a storm

            Lists when Stormy alerts you of a storm, when Stormy updates the notification silently, and when Stormy calls the storm off.

            ## Overview

            The type `StormLife` contains all rules of this page. Each check passes the result of the storm rule and the state of the storm's notification
            to the type `StormLife`. The type `StormLife` returns the actions that Stormy performs. In the table, an empty cell means that Stormy performs no action.

            A forecast is fresh if Stormy received the forecast at most \(Int(StormCheckData.longestAge / 3600)) h ago, and if the weather service made the forecast at most \(Int(StormCheckData.longestIssue / 3600)) h ago.
            A forecast can call a storm off only if the forecast is complete. A forecast is complete if the forecast has values for each hour of the storm
            and for each kind of weather (thunder, gusts, rain) that was a reason for the storm.

            In the table, the limit for gusts is \(Int(StormRule().gustsKMH)) km/h. Two extreme warnings have the same kind if their hazard and name are equal.
            If a storm is expected again after Stormy called the storm off, Stormy alerts you of the storm at most \(StormLife.alertingReturns) times in \(Int(StormLife.returnSpan / 3600)) h.
            In the table, the word "earlier" means earlier than the earliest start of the storm for which Stormy alerted you.

            A test writes this page with the command `WRITE_TABLES=1 swift test --filter StormLifeTests`.

            | Storm | Event | Notification | Photo request |
            | --- | --- | --- | --- |
            \(rows.joined(separator: "\n"))

            """
        let file = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../../Sources/Stormy/StormyWeather/StormyWeather.docc/StormLife.md").standardized
        if ProcessInfo.processInfo.environment["WRITE_TABLES"] != nil { return try Data(page.utf8).write(to: file) }
        #expect(try String(contentsOf: file, encoding: .utf8) == page, "WRITE_TABLES=1 writes the page again")
    }

    @Test func `a severe warning after a dismissed severe forecast and two calm checks alerts`() {
        var story = Story.shown(110)
        for _ in 0..<2 { story.check(20, .dismissed) }
        story.check(20, .dismissed, warning: .severe)
        #expect(story.commands == [.alert, .openPhotoRequest])
        story.check(20, .waiting, cancelled: true)
        #expect(!story.commands.contains(.callOff) || story.life?.shown?.isSeen == true)
    }

    @Test func `an extreme warning of another hazard alerts once after the earlier one is over`() {
        var story = Self.dismissedTornado
        story.warn(.dismissed, [Self.flood], cancelled: ["tornado"])
        #expect(story.commands == [])
        story.warn(.dismissed, [Self.flood, Self.hurricane])
        #expect(story.commands == [.alert, .openPhotoRequest])
        story.warn(.visible, [Self.flood, Self.hurricane])
        #expect(story.commands == [.update])
        // Each kind of warning alerts once, even if the kinds alternate.
        story.warn(.dismissed, [Self.flood, Story.warning("tornado 2", "Tornado", .extreme)], cancelled: ["hurricane"])
        #expect(story.commands == [])
        story.warn(.dismissed, [Self.flood, Story.warning("hurricane 2", "HURRICANE", .extreme)], cancelled: ["tornado 2"])
        #expect(story.commands == [])
    }

    @Test func `an extreme warning that came beside a dismissed one alerts when it is left alone`() {
        var story = Self.dismissedTornado
        story.warn(.dismissed, [Self.tornado, Self.hurricane])
        #expect(story.commands == [])
        story.warn(.dismissed, [Self.hurricane], cancelled: ["tornado"])
        #expect(story.commands == [.alert, .openPhotoRequest])
    }

    @Test func `an extreme warning that the text on the screen has named does not alert when it is left alone`() {
        for state in [StormNotificationState.State.visible, .snoozed] {
            var story = Story()
            story.warn(.none, [Self.tornado])
            story.warn(state, [Self.tornado, Self.hurricane])
            #expect(story.commands == [.update])
            story.warn(.dismissed, [Self.hurricane], cancelled: ["tornado"])
            #expect(story.commands == [])
        }
    }

    @Test func `an update that gives an extreme warning another name does not alert`() {
        var story = Self.dismissedTornado
        story.warn(.dismissed, [Self.flood, Story.warning("tornado 2", "Tornado Emergency", .extreme, updating: "tornado")])
        #expect(story.commands == [])
        story.warn(.dismissed, [Self.flood, Story.warning("tornado 3", "Tornado", .extreme, updating: "tornado 2")])
        #expect(story.commands == [])
    }

    @Test(arguments: [StormNotificationState.State.dismissed, .snoozed, .withdrawn])
    func `another hazard below the extreme level alerts once after its storm has left the screen`(
        _ state: StormNotificationState.State
    ) {
        var story = Self.shownWind
        story.warn(state, [Self.flood], cancelled: ["wind"])
        #expect(story.commands == [.alert, .openPhotoRequest])
        story.warn(.visible, [Self.flood])
        #expect(story.commands == [.update])
        // Each hazard alerts once, even if the hazards alternate.
        story.warn(.dismissed, [Story.warning("wind 2", "Storm", .severe)], cancelled: ["flood"])
        #expect(story.commands == [])
        story.warn(.dismissed, [Story.warning("flood 2", "River Flood", .severe, hazard: .flood)], cancelled: ["wind 2"])
        #expect(story.commands == [])
    }

    @Test func `a hazard alerts again at a higher level although another hazard had that level`() {
        var story = Story()
        let tornado = Self.tornado
        story.warn(.none, [tornado, Self.flood])
        story.warn(.dismissed, [tornado, Self.flood])
        #expect(story.commands == [])
        story.warn(.dismissed, [tornado, Story.warning("flood", "Flood", .extreme, hazard: .flood)])
        #expect(story.commands == [.alert, .openPhotoRequest])
        story.warn(.dismissed, [tornado, Self.flood])
        #expect(story.commands == [])
    }

    @Test func `a hazard that the text on the screen has named does not alert after a dismissal`() {
        var story = Self.shownWind
        story.warn(.visible, [Self.wind, Self.flood])
        #expect(story.commands == [.update])
        story.warn(.dismissed, [Self.flood], cancelled: ["wind"])
        #expect(story.commands == [])
    }

    @Test func `a hazard that the text on the screen has named is known if the process died before it stored that`() {
        var story = Self.shownWind
        let stored = story.life
        story.warn(.visible, [Self.wind, Self.flood])
        let memory = story.memory
        story.life = stored
        story.warn(.dismissed, [Self.wind, Self.flood], memory: memory)
        #expect(story.commands == [.openPhotoRequest])
    }

    @Test func `an alert for another hazard that ends before it is seen becomes silent`() {
        var story = Self.shownWind
        story.warn(.dismissed, [Self.wind, Self.flood])
        #expect(story.commands == [.alert, .openPhotoRequest])
        story.warn(.waiting, [Self.wind], cancelled: ["flood"])
        #expect(story.commands == [.showSilently])
    }

    @Test func `a storm that an earlier version had shown for warnings does not alert for its hazards`() throws {
        var story = Self.shownWind
        var facts = try #require(story.life?.shown?.alerted)
        facts.hazards = nil
        let memory = StormLife.Memory(step: 1, phase: .shown(StormLife.Shown(alerted: facts, seen: facts, highest: .severe)))
        story.life = story.life.map {
            StormLife(window: $0.window, reasons: $0.reasons, outlook: $0.outlook, memory: memory)
        }
        story.warn(.dismissed, [Self.wind])
        #expect(story.commands == [])
    }

    @Test func `another extreme warning after the storm was called off alerts also after three returns`() {
        var story = Story()
        story.warn(.none, [Self.tornado])
        for turn in 0..<3 {
            story.warn(.visible, [], cancelled: ["tornado", "tornado \(turn)"])
            #expect(story.commands == [.callOff, .closePhotoRequest])
            story.warn(.visible, [Story.warning("tornado \(turn + 1)", "Tornado", .extreme)])
            #expect(story.commands == [.alert, .openPhotoRequest])
        }
        story.warn(.visible, [], cancelled: ["tornado 3"])
        story.warn(.visible, [Self.hurricane])
        #expect(story.commands == [.alert, .openPhotoRequest])
        story.warn(.visible, [], cancelled: ["hurricane"])
        story.warn(.visible, [Story.warning("tornado 9", "Tornado", .extreme)])
        #expect(story.commands == [.showSilently, .openPhotoRequest])
    }

    @Test func `an alert for another extreme warning that ends before it is seen becomes silent`() {
        var story = Self.dismissedTornado
        story.warn(.dismissed, [Self.flood, Self.hurricane], cancelled: ["tornado"])
        story.warn(.waiting, [Self.flood, Self.hurricane])
        #expect(story.commands == [.update])
        story.warn(.waiting, [Self.flood], cancelled: ["hurricane"])
        #expect(story.commands == [.showSilently])
    }

    @Test(arguments: [StormReasonKind.rain, .thunderstorm]) func `rain and thunder are called off by a forecast that knows them`(
        _ kind: StormReasonKind
    ) {
        func forecast(_ storm: Bool, isKnown: Bool = true) -> Forecast {
            Forecast(
                hours: (0..<12).map { hour in
                    let isIn = storm && (4..<6).contains(hour)
                    return ForecastHour(
                        start: noon + Double(hour) * 3600,
                        weatherCode: isKnown || kind == .rain ? (isIn && kind == .thunderstorm ? 95 : 3) : nil,
                        precipitationMM: isKnown || kind == .thunderstorm ? (isIn ? 24 : 0) : nil, gustsKMH: 10)
                })
        }
        func look(_ forecast: Forecast) -> StormCheckData {
            let rule = StormRule(rainMMPerHour: kind == .rain ? 20 : 50)
            return StormCheckData(rule.assess(forecast, now: noon), rule: rule, forecast: forecast, fetchedAt: noon, now: noon)
        }
        guard case .open(var life)? = StormLife.follow([], look(forecast(true))).first else { return #expect(Bool(false)) }
        _ = life.handle(.checked(StormNotificationState(.none), now: noon))
        #expect(
            StormLife.follow([(1, life)], look(forecast(false, isKnown: false))) == [], "the forecast has no values for \(kind)")
        guard case .change(_, var denied)? = StormLife.follow([(1, life)], look(forecast(false))).first else {
            return #expect(Bool(false))
        }
        #expect(denied.handle(.checked(StormNotificationState(.visible), now: noon)) == [.callOff, .closePhotoRequest])
    }

    @Test func `a storm that an earlier version had shown does not alert`() {
        for (isClosed, isCancelled) in [(false, false), (true, false), (true, true)] {
            let reasons = [StormReason(kind: .gusts, peak: 110, from: noon, until: noon + 3600)]
            let memory = StormLife.Memory(
                earlierVersionOf: reasons, begins: noon, ends: noon + 3600, isShown: true, isClosed: isClosed,
                isCancelled: isCancelled)
            var life = StormLife(
                window: window(0, 1), reasons: reasons, outlook: isCancelled ? .notExpected : .expected, memory: memory)
            #expect(!life.handle(.checked(StormNotificationState(.dismissed), now: noon)).contains(.alert))
        }
    }
}

extension Story {
    /// The stored state if the process died before it stored that the notification was shown.
    fileprivate var forgotten: Story {
        var story = self
        story.life = life.map { StormLife(window: $0.window, reasons: $0.reasons) }
        return story
    }
}
