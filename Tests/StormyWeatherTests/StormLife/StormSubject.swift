import Foundation

@testable import StormyWeather

/// Runs a ``StormLife`` through a sequence. The state is stored between any two steps, and the commands change a screen. A bug
/// changes the input, or the handling of the commands.
struct StormSubject {
    static let base = Date(timeIntervalSince1970: 1_770_454_800)
    /// The middle of the forecast storm, in hours after the base time.
    private static let middle = 10
    private static let year: Double = 365 * 86_400

    let bug: StormBug?
    private(set) var screen = StormScreen()
    private(set) var now = base
    private(set) var isAhead = false
    /// The number of records of the storm. A storm must have only one record.
    private(set) var records = 0
    private var life: StormLife?
    private var (warnings, cancelled): ([StandingWarning], [String]) = ([], [])
    private var nextWarning = 0
    private let rule = StormRule()

    init(_ bug: StormBug? = nil) { self.bug = bug }

    /// - Returns: The input of the check; `nil` if the step is not a check.
    mutating func play(_ step: StormStep, after seconds: Double) -> StormInput? {
        now += seconds
        screen.pass(to: now)
        switch step {
        case .warn(let severity, let hours, let hazard):
            if isAhead { return nil }
            nextWarning += 1
            let from = Self.base + Double(Self.middle) * 3600
            warnings = warnings.filter { $0.until > now }
            cancelled += warnings.filter { $0.hazard == hazard }.map(\.identifier)
            warnings.removeAll { $0.hazard == hazard }
            warnings += [
                StandingWarning(
                    identifier: "w\(nextWarning)", severity: severity, hazard: hazard, from: from,
                    until: from + Double(hours) * 3600)
            ].filter { $0.until > now }
        case .cancelWarning:
            if isAhead { return nil }
            cancelled += warnings.filter { $0.until > now }.map(\.identifier)
            warnings.removeAll { $0.until > now }
        case .dismiss: screen.dismiss()
        case .snooze: screen.snooze(until: now + 3600)
        case .providePhoto: screen.providePhoto()
        case .serverLeaves: screen.hasServer = false
        case .serverReturns: screen.hasServer = true
        case .quit: screen.withdraw()
        case .clockJumps: if !isAhead { (now, isAhead) = (now + Self.year, true) }
        case .clockReturns: if isAhead { (now, isAhead) = (now - Self.year, false) }
        case .check(let data, let gusts, let from, let hours, let crash):
            return check(isAhead ? .none : data, gusts, from, hours, crash)
        }
        screen.pass(to: now)
        return nil
    }

    private mutating func check(_ data: StormStep.Data, _ kmh: Double, _ from: Int, _ length: Int, _ crash: Int?) -> StormInput {
        let start = Self.base + (now.timeIntervalSince(Self.base) / 3600).rounded(.down) * 3600
        let block = (Self.middle + from)..<(Self.middle + from + length)
        let first = Int((start.timeIntervalSince(Self.base) / 3600).rounded())
        var hours: [(start: Date, kmh: Double?)] = (first..<first + 26).map { hour in
            (Self.base + Double(hour) * 3600, block.contains(hour) ? kmh : 20)
        }
        switch data {
        case .none, .fresh, .old: break
        case .gap:
            for (index, hour) in hours.enumerated() where hour.start == Self.base + Double(Self.middle + 1) * 3600 {
                hours[index].kmh = nil
            }
        case .short: hours.removeAll { $0.start >= Self.base + Double(Self.middle + 1) * 3600 }
        case .noGusts: for index in hours.indices { hours[index].kmh = nil }
        }
        var input = StormInput(
            now: now, gusts: data == .none ? nil : hours, fetchedAt: data == .old ? now - 5 * 3600 : now,
            warnings: warnings.filter { $0.until > now }, isComplete: crash == nil)
        look(&input)
        input.isComplete = carryOut(crash) && input.isComplete
        return input
    }

    private mutating func look(_ input: inout StormInput) {
        let standing = warnings.map { warning in
            AlertEvent(
                messages: [warning.identifier], state: .standing,
                infos: [
                    AlertInfo(
                        event: "\(warning.hazard)", hazard: warning.hazard, severity: warning.severity, from: warning.from,
                        until: warning.until,
                        issuer: "X",
                        areas: [])
                ])
        }
        let over = cancelled.map { AlertEvent(messages: [$0], state: .cancelled, infos: []) }
        // If a check receives no data, it changes nothing.
        if input.gusts == nil, warnings.isEmpty, cancelled.isEmpty { return }
        let hours = (input.gusts ?? []).map {
            ForecastHour(start: $0.start, weatherCode: 3, precipitationMM: 0, gustsKMH: $0.kmh)
        }
        let forecast = Forecast(hours: hours)
        let assessment = rule.assess(forecast, alerts: standing + over, now: now)
        let look = StormCheckData(
            assessment, rule: rule, forecast: input.gusts == nil ? nil : forecast, fetchedAt: input.fetchedAt, now: now)
        let seen = bug?.look(look, forecast, life) ?? look
        // If a storm ended long ago, it is not compared with the new forecast.
        let known = life.flatMap { $0.window.until > now - 12 * 3600 ? [(Int64(1), $0)] : nil } ?? []
        for change in StormLife.follow(known, seen) {
            switch change {
            case .open(let new): (life, records) = (stored(new), records + 1)
            case .change(_, let new): life = stored(new)
            }
        }
    }

    /// - Returns: Whether all commands were carried out, and the ``StormLife`` was stored.
    private mutating func carryOut(_ crash: Int?) -> Bool {
        guard let before = life else { return true }
        var new = before
        let answer = bug?.answer(screen.answer, before, self) ?? screen.answer
        var commands = new.handle(.checked(answer, now: now))
        if let bug {
            (commands, new) = bug.outcome(commands, before, new, answer, self)
            if bug == .lifeIsStoredFirst { life = stored(new) }
        }
        for (number, command) in commands.enumerated() {
            if number == crash { return false }
            perform(command, new, answer)
        }
        if crash != nil { return false }
        life = stored(new)
        return true
    }

    /// Returns the ``StormLife`` after it was stored and read again.
    private func stored(_ life: StormLife) -> StormLife {
        guard let data = try? JSONEncoder().encode(life.memory),
            let memory = try? JSONDecoder().decode(StormLife.Memory.self, from: data)
        else { return life }
        return StormLife(window: life.window, reasons: life.reasons, outlook: life.outlook, memory: memory)
    }

    private mutating func perform(_ command: StormLife.Command, _ life: StormLife, _ answer: StormNotificationState) {
        let warnings = life.reasons.filter { $0.kind == .alert }.map { ($0.hazard ?? .wind, StormSeverity([$0]).rawValue) }
        let text = StormScreen.Text(
            kind: command == .callOff ? .calledOff : .storm, level: StormSeverity(life.reasons).rawValue,
            isWarned: !warnings.isEmpty, hazards: Dictionary(warnings, uniquingKeysWith: max),
            peak: life.reasons.filter { $0.kind == .gusts }.map(\.peak).max() ?? 0, until: life.window.until)
        switch command {
        case .alert: screen.add(text, isLoud: true, life.memory)
        case .showSilently:
            if screen.visible != nil { screen.change(text, life.memory) } else { screen.add(text, isLoud: false, life.memory) }
        case .update: screen.change(text, life.memory)
        case .callOff:
            if bug == .callOffIsAdded { screen.add(text, isLoud: false, life.memory) }
            screen.change(text, life.memory, isLoud: bug == .callOffAlerts)
        case .withdraw: screen.withdraw()
        case .openPhotoRequest: screen.openPhotoRequest()
        case .closePhotoRequest:
            if bug == .photoIsForgotten { screen.closeAnyPhotoRequest() } else { screen.closePhotoRequest() }
        }
    }
}
