import Foundation

@testable import StormyWeather

/// Bugs that ``StormJudge`` has to find, three for each rule. A bug changes the input of a ``StormLife``, or the handling of its
/// commands. ``StormLife`` itself therefore contains no code for tests.
enum StormBug: String, CaseIterable, Sendable {
    // Rule: a new storm alerts.
    case newIsNotShown, newAlertsOnlyIfSevere, newIsSilent
    // Rule: changed text is updated silently. If the user dismissed a storm's notification, its text is not updated.
    case updateAlerts, updateIsDropped, dismissalIsForgotten
    // Rule: if a storm reaches a higher level, it alerts again.
    case higherIsDroppedAfterDismissal, higherIsDroppedAfterSnooze, higherIsUpdated
    // Rule: the first official warning counts as a higher level.
    case warningIsNotHigher, warningIsTakenForShown, warningIsDropped
    // Rule: when the notification has left the screen, a warning of another hazard alerts once.
    case hazardIsDroppedAfterDismissal, hazardIsDroppedAfterSnooze, hazardAlertsOnScreen, hazardAlertsAgain
    // Rule: if the start moves earlier by three hours, the storm alerts once.
    case earlierIsDropped, oneHourEarlierAlerts, earlierAlertsAgain
    // Rule: a storm is called off if a fresh forecast covers its hours and is below 80 % of the limit.
    case oldDataDeny, missingHoursDeny, ninetyPercentDenies
    // Rule: the message that a storm is called off is shown silently, and only if the user saw the storm.
    case callOffIsDropped, callOffAlerts, callOffIsAdded
    // Rule: if a storm is called off, its snoozed notification is removed, and a photo request without a photo is closed.
    case snoozedStays, photoStaysOpen, photoIsForgotten
    // Rule: if a storm returns, it alerts, at most three times in a day.
    case returnIsDropped, returnsHaveNoLimit, oneReturnAlerts
    // Rule: when a storm is over, its notification is removed and its photo request is closed.
    case endStaysOnScreen, endLeavesPhotoOpen, endIsNotChecked
    // Rule: a process may die between any two steps.
    case notificationIsNotRead, lifeIsStoredFirst, stepsDoNotGrow
    // Rule: the clock may have been ahead.
    case clockEndIsReal, clockEndIsFinal, clockReturnIsDropped

    func look(_ look: StormCheckData, _ forecast: Forecast, _ life: StormLife?) -> StormCheckData {
        func judged(_ forecast: Forecast, _ assessment: Assessment) -> StormCheckData {
            StormCheckData(assessment, rule: look.rule, forecast: forecast, fetchedAt: look.now, now: look.now)
        }
        var other = forecast
        switch self {
        case .oldDataDeny: return forecast.hours.isEmpty ? look : judged(forecast, look.assessment)
        case .missingHoursDeny:
            guard look.forecast != nil else { return look }
            for index in other.hours.indices { other.hours[index].gustsKMH = other.hours[index].gustsKMH ?? 0 }
            return judged(other, look.assessment)
        case .ninetyPercentDenies:
            guard look.forecast != nil else { return look }
            for index in other.hours.indices { other.hours[index].gustsKMH? *= 0.8 }
            return judged(other, look.assessment)
        case .warningIsDropped:
            guard life?.isShown == true else { return look }
            var assessment = look.assessment
            assessment.reasons.removeAll { $0.kind == .alert }
            return StormCheckData(assessment, rule: look.rule, forecast: look.forecast, fetchedAt: look.now, now: look.now)
        default: return look
        }
    }

    func answer(_ answer: StormNotificationState, _ life: StormLife, _ subject: StormSubject) -> StormNotificationState {
        var answer = answer
        switch self {
        case .dismissalIsForgotten: if answer.state == .dismissed { answer.state = .unseen }
        case .notificationIsNotRead: answer.memory = nil
        case .stepsDoNotGrow: answer.memory?.step = life.memory.step
        default: break
        }
        return answer
    }

    /// Changes the commands and the stored ``StormLife``.
    func outcome(
        _ commands: [StormLife.Command], _ before: StormLife, _ after: StormLife, _ answer: StormNotificationState,
        _ subject: StormSubject
    ) -> ([StormLife.Command], StormLife) {
        let isAlert = commands.contains(.alert)
        let (isNew, wasShown) = (before.shown == nil, before.isShown)
        let wasCalledOff = if case .calledOff = before.memory.phase { true } else { false }
        let isEnd = after.window.until <= subject.now
        func replacing(_ command: StormLife.Command, by other: StormLife.Command?) -> [StormLife.Command] {
            commands.compactMap { $0 == command ? other : $0 }
        }
        func changing(_ change: (inout StormLife.Shown) -> Void) -> StormLife {
            guard var shown = after.memory.phase.shown else { return after }
            change(&shown)
            var memory = after.memory
            memory.phase.shown = shown
            return StormLife(window: after.window, reasons: after.reasons, outlook: after.outlook, memory: memory)
        }
        let rises = isAlert && wasShown && answer.state != .unseen && after.level > (before.shown?.alerted.level ?? .extreme)
        let isEarlier =
            isAlert && wasShown && !rises
            && after.shown?.alerted.begins ?? .distantPast < before.shown?.alerted.begins ?? .distantPast
        let isFirstWarning =
            isAlert && wasShown && after.shown?.alerted.isWarned == true && before.shown?.alerted.isWarned == false
        let hasOtherHazard =
            wasShown && before.shown.flatMap { shown in after.shown?.alerted.isAnotherHazard(than: shown.alerted) } == true
        let isOnlyHazard = isAlert && hasOtherHazard && !rises && !isEarlier && !isFirstWarning && answer.state != .unseen
        switch self {
        case .hazardIsDroppedAfterDismissal: return (isOnlyHazard && answer.state == .dismissed ? [] : commands, after)
        case .hazardIsDroppedAfterSnooze: return (isOnlyHazard && answer.state == .snoozed ? [] : commands, after)
        case .hazardAlertsOnScreen: return (hasOtherHazard ? replacing(.update, by: .alert) : commands, after)
        case .hazardAlertsAgain:
            return (commands, changing { $0.alerted.hazards = before.shown?.alerted.hazards ?? $0.alerted.hazards })
        case .newIsNotShown: return (isAlert && isNew ? [] : commands, after)
        case .newAlertsOnlyIfSevere: return (isAlert && isNew && after.level == .moderate ? [] : commands, after)
        case .newIsSilent: return (isNew ? replacing(.alert, by: .showSilently) : commands, after)
        case .updateAlerts: return (replacing(.update, by: .alert), after)
        case .updateIsDropped: return (replacing(.update, by: nil), after)
        case .higherIsDroppedAfterDismissal: return (rises && answer.state == .dismissed ? [] : commands, after)
        case .higherIsDroppedAfterSnooze: return (rises && answer.state == .snoozed ? [] : commands, after)
        case .higherIsUpdated: return (rises ? replacing(.alert, by: .update) : commands, after)
        case .warningIsNotHigher:
            return (isFirstWarning && after.shown?.alerted.level == before.shown?.alerted.level ? [] : commands, after)
        case .warningIsTakenForShown: return (commands, changing { $0.alerted.isWarned = true })
        case .earlierIsDropped: return (isEarlier && !isFirstWarning ? [] : commands, after)
        case .oneHourEarlierAlerts:
            let begins = after.reasons.map(\.from).min() ?? .distantPast
            let isOne =
                wasShown && after.outlook == .expected
                && (before.shown?.alerted.begins ?? .distantPast).timeIntervalSince(begins) >= 3600
            return (isOne ? replacing(.update, by: .alert) : commands, after)
        case .earlierAlertsAgain:
            return (
                commands, isEarlier ? changing { $0.alerted.begins = before.shown?.alerted.begins ?? $0.alerted.begins } : after
            )
        case .callOffIsDropped: return (replacing(.callOff, by: nil), after)
        case .callOffIsAdded:
            let isSilent = wasShown && !after.isShown && !isEnd && !commands.contains(.callOff)
            return (commands + (isSilent ? [.callOff] : []), after)
        case .snoozedStays: return (answer.state == .snoozed ? replacing(.withdraw, by: nil) : commands, after)
        case .photoStaysOpen: return (isEnd ? commands : replacing(.closePhotoRequest, by: nil), after)
        case .returnIsDropped: return (isAlert && wasCalledOff ? [] : commands, after)
        case .returnsHaveNoLimit: return (commands, changing { $0.returns = [] })
        case .oneReturnAlerts: return (commands, changing { $0.returns = $0.returns.flatMap { [$0, $0, $0] } })
        case .endStaysOnScreen: return (isEnd ? replacing(.withdraw, by: nil) : commands, after)
        case .endLeavesPhotoOpen: return (isEnd ? replacing(.closePhotoRequest, by: nil) : commands, after)
        case .endIsNotChecked: return isEnd ? ([], before) : (commands, after)
        case .clockEndIsReal, .clockEndIsFinal: return (commands, ended(after))
        case .clockReturnIsDropped: return (before.isClosed ? replacing(.showSilently, by: nil) : commands, after)
        default: return (commands, after)
        }
    }

    /// Returns the ``StormLife`` with a different end time.
    private func ended(_ life: StormLife) -> StormLife {
        guard case .over(let phase, _) = life.memory.phase else { return life }
        var memory = life.memory
        memory.phase = self == .clockEndIsReal ? .over(phase, at: .distantPast) : .calledOff(phase.shown ?? .none)
        return StormLife(window: life.window, reasons: life.reasons, outlook: life.outlook, memory: memory)
    }
}

extension StormLife.Shown {
    fileprivate static let none = StormLife.Shown(
        alerted: StormLife.Facts(level: .extreme, isWarned: true, begins: .distantPast))
}
