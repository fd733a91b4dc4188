import BackgroundRuntime
import BackgroundTasks
import Foundation
import StormyWeather
import UserNotifications

/// Tells a person of storms: one notification each, however often and by whom it is asked.
package struct StormTeller: Sendable {
    package static let category = "stormy.storm"
    package static let calledOffCategory = "stormy.called-off"

    let store: StormyStore

    package init(store: StormyStore) { self.store = store }

    /// Buttons of a storm's notification.
    static func registerCategory() {
        UNUserNotificationCenter.current().setNotificationCategories([
            UNNotificationCategory(
                identifier: category,
                actions: [
                    UNNotificationAction(identifier: "photo", title: "Add photo…", options: [.foreground]),
                    UNNotificationAction(identifier: "details", title: "Details"),
                    UNNotificationAction(identifier: "snooze", title: "Snooze"),
                ], intentIdentifiers: [])
        ])
    }

    /// Of which storms it is still known that they come.
    package enum Which {
        /// Nobody could be asked just now.
        case all
        /// Those that somebody warns of: what the forecast shows is not known.
        case warnedOf
        /// Those that somebody warns of, and those that the newest forecast shows: of what an earlier one showed alone nobody is told.
        case seen(Assessment)
    }

    /// Notifies of the storms of the place that were not told yet. Add first (the same identifier twice is one
    /// notification), then mark: a death in between tells the same thing again, which changes nothing.
    ///
    package func tell(_ place: Place, _ which: Which = .all) throws {
        // As it is now: the answer that showed the storm also told the place's time zone.
        guard let place = try store.places().first(where: { $0.id == place.id }) else { return }
        try takeBackCancelled(at: place)
        let storms = try store.untoldStorms(of: place, now: BGTaskScheduler.now).filter { storm in
            switch which {
            case .all: true
            case .warnedOf: storm.reasons.contains(where: \.hangsOnWarnings)
            case .seen(let assessment):
                storm.reasons.contains(where: \.hangsOnWarnings)
                    || assessment.reasons.contains { $0.from < storm.ends && storm.begins < $0.until }
            }
        }
        // As the forecast has them now: on the screen they are changed in their place, and nobody is alerted.
        let told = try store.toldStorms(of: place, now: BGTaskScheduler.now)
        let letGo = UNUserNotificationCenter.current().untold(of: told.map(Self.identifier)).letGo
        for storm in told where try !update(storm, place) && letGo.contains(Self.identifier(of: storm)) {
            // It was switched off for a day, and may be on again.
            try add(storm, place)
        }
        // A check by hand may be the first that tells anything: the buttons must be known by then.
        if !storms.isEmpty { Self.registerCategory() }
        for storm in storms {
            // Added in a process that died before it could mark that: perhaps with other hours, and perhaps dismissed since.
            if try !update(storm, place) {
                Self.withdraw([Self.calledOff(storm)])
                try add(storm, place)
            }
            try store.markTold(storm, now: BGTaskScheduler.now)
        }
    }

    /// Takes back what was told of storms that were cancelled, and says so; told again should the warning come back.
    package func takeBackCancelled(at place: Place) throws {
        let cancelled = try store.cancelledStorms(of: place)
        if cancelled.isEmpty { return }
        // Of what nobody has heard of nobody has to hear that it does not come.
        let untold = UNUserNotificationCenter.current().untold(of: cancelled.map(Self.identifier))
        let unheard = untold.waiting.union(untold.letGo)
        for storm in cancelled where storm.ends > BGTaskScheduler.now && !unheard.contains(Self.identifier(of: storm)) {
            try Self.sayCalledOff(storm, place)
        }
        // Not what says that it was called off: a death before the store knows repeats this.
        Self.withdraw(cancelled.flatMap(Self.identifiersOfItself))
        try store.markUntold(cancelled)
    }

    /// Where it stood, in silence: a person who saw the one is to see the other.
    private static func sayCalledOff(_ storm: StormRecord, _ place: Place) throws {
        let content = UNMutableNotificationContent()
        content.title = StormText.calledOff(place: place.name)
        content.body = "The warning was cancelled by its issuer."
        // Without buttons: there is nothing to photograph.
        content.categoryIdentifier = calledOffCategory
        content.interruptionLevel = .passive
        content.expirationDate = storm.ends
        try add(
            UNNotificationRequest(identifier: calledOff(storm), content: content, trigger: nil, alertsOncePerContent: true))
    }

    /// Takes back what waits to be shown of storms that are over: nobody could show it, or it was snoozed. That one was called off is still
    /// to be said, until it would have been over.
    func withdrawPast() throws {
        Self.withdrawPending(try store.storms().suffix(50).filter(\.isClosed).flatMap(Self.identifiersOfItself))
    }

    /// Takes back everything that is, or is to be, on the screen.
    package static func withdraw(_ storms: [StormRecord]) { withdraw(storms.flatMap(identifiers)) }

    private static func withdraw(_ identifiers: [String]) {
        withdrawPending(identifiers)
        UNUserNotificationCenter.current().removeDeliveredNotifications(withIdentifiers: identifiers)
    }

    private static func withdrawPending(_ identifiers: [String]) {
        UNUserNotificationCenter.current().removePendingNotificationRequests(withIdentifiers: identifiers)
    }

    private static func identifiers(of storm: StormRecord) -> [String] { identifiersOfItself(storm) + [calledOff(storm)] }

    /// Of what tells that it comes.
    private static func identifiersOfItself(_ storm: StormRecord) -> [String] {
        [identifier(of: storm), identifier(of: storm) + snoozed]
    }

    private static func identifier(of storm: StormRecord) -> String { identifier(ofStorm: "\(storm.id ?? 0)") }

    /// Of its notification.
    package static func identifier(ofStorm id: String) -> String { "storm-\(id)" }

    /// Ends the identifier of one that is shown again later.
    static let snoozed = "-snoozed"

    private static func calledOff(_ storm: StormRecord) -> String { identifier(of: storm) + "-called-off" }

    private func add(_ storm: StormRecord, _ place: Place) throws {
        let picture = StormPicture(storm, place, store)
        let request = UNNotificationRequest(
            identifier: Self.identifier(of: storm), content: content(storm, place, picture), trigger: nil,
            alertsOncePerContent: true)
        try withExtendedLifetime(picture) { try Self.add(request) }
    }

    private static func add(_ request: UNNotificationRequest) throws {
        let failure = Failure()
        UNUserNotificationCenter.current().add(request) { failure.set($0) }
        if let error = failure.error { throw error }
    }

    /// - Returns: whether the person was told of this storm, or will be.
    private func update(_ storm: StormRecord, _ place: Place) throws -> Bool {
        var (picture, isKnown, isWorse): (StormPicture?, Bool, Bool) = (nil, false, false)
        try UNUserNotificationCenter.current().updateNotification(withIdentifier: Self.identifier(of: storm)) { told in
            guard Self.isOf(storm, told) else { return nil }
            isKnown = true
            let content = content(storm, place, nil)
            // Of what goes up and down the person is told once.
            let worst = max(Self.worst(told) ?? 0, told.interruptionLevel.rawValue)
            isWorse = content.interruptionLevel.rawValue > worst
            content.userInfo[Self.worstKey] = max(worst, content.interruptionLevel.rawValue)
            let isSame = (told.title, told.body, told.expirationDate) == (content.title, content.body, content.expirationDate)
            guard !isWorse, !isSame else { return nil }
            picture = StormPicture(storm, place, store)
            content.attachments = [picture?.attachment].compactMap { $0 }
            return content
        }
        extendLifetime(picture)
        if isWorse {
            // Also where the person has closed or snoozed the lesser one.
            Self.withdraw([Self.identifier(of: storm) + Self.snoozed])
            try add(storm, place)
        }
        return isKnown
    }

    /// Of the storm that a notification is of; `nil`: of none.
    static func number(ofStormIn userInfo: [AnyHashable: Any]) -> Int64? {
        (userInfo["storm"] as? NSNumber)?.int64Value ?? (userInfo["storm"] as? Int).map(Int64.init)
    }

    private static let worstKey = "worst"

    /// The highest level at which it was told.
    private static func worst(_ told: UNNotificationContent) -> UInt? {
        (told.userInfo[worstKey] as? NSNumber)?.uintValue ?? (told.userInfo[worstKey] as? Int).map(UInt.init)
    }

    /// Seconds by which a storm's beginning may move and it is the same.
    private static let longestMove: Double = 43_200

    /// A store that was lost, or comes from a backup, gives numbers again: the beginnings tell those storms apart.
    private static func isOf(_ storm: StormRecord, _ told: UNNotificationContent) -> Bool {
        guard let id = number(ofStormIn: told.userInfo),
            let from = (told.userInfo["from"] as? NSNumber)?.doubleValue ?? told.userInfo["from"] as? Double
        else { return false }
        return id == storm.id && abs(from - storm.begins.timeIntervalSince1970) <= longestMove
    }

    private func content(_ storm: StormRecord, _ place: Place, _ picture: StormPicture?) -> UNMutableNotificationContent {
        let content = UNMutableNotificationContent()
        let severity = StormSeverity(storm.reasons)
        content.title = StormText.title(place: place.name, severity)
        let body = StormText.body(
            storm.reasons, timeZone: place.zone, locale: PersonLocale.current, units: .ofPerson, now: BGTaskScheduler.now)
        content.body = [body, StormText.headline(storm.reasons)].compactMap { $0 }.joined(separator: "\n")
        content.categoryIdentifier = Self.category
        // It stays until the person answers; the worst passes quiet hours, and is told again where a lesser one was told.
        content.interruptionLevel = severity == .extreme ? .critical : .timeSensitive
        content.expirationDate = storm.ends
        content.sound = .default
        content.textWithoutButtons = "In a terminal: stormy report --open, or stormy upload PHOTO"
        // The beginning tells it from a storm of its number in a store that was lost: that one is told already.
        content.userInfo = ["storm": storm.id ?? 0, "place": place.name, "from": storm.begins.timeIntervalSince1970]
        content.attachments = [picture?.attachment].compactMap { $0 }
        return content
    }
}

/// What a completion handler said.
private final class Failure: @unchecked Sendable {  // because the handler is called before `add` returns
    private(set) var error: (any Error)?

    func set(_ error: (any Error)?) { self.error = error }
}
