import BackgroundRuntime
import BackgroundTasks
import Foundation
import StormyWeather
import UserNotifications

/// Carries out the commands of ``StormLife``. Each storm has one notification.
package struct StormNotifier: Sendable {
    package static let category = "stormy.storm"
    package static let calledOffCategory = "stormy.called-off"

    let store: StormyStore

    package init(store: StormyStore) { self.store = store }

    /// Registers the buttons of a storm's notification.
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

    /// The storms for which an alert may be shown.
    package enum Alerting {
        case all
        /// An alert is shown only for a storm with an official warning, because the forecast has not arrived yet.
        case warnedOf
        /// No alert is shown. Notifications of ended storms are withdrawn. If a storm is no longer expected, its notification is
        /// replaced by "No longer expected".
        case none
    }

    /// Shows or updates the notifications of the storms at a place, with the current data.
    package func show(_ place: Place, _ alerting: Alerting = .all) throws {
        // The place is read again, because the response that contained the storm may also have set the place's time zone.
        guard let place = try store.places().first(where: { $0.id == place.id }) else { return }
        let now = BGTaskScheduler.now
        for storm in try store.recentStorms(of: place.id, now: now) {
            switch alerting {
            case .all: try carryOut(storm, place, mayAlert: true, now)
            case .warnedOf: try carryOut(storm, place, mayAlert: storm.reasons.contains(where: \.hangsOnWarnings), now)
            case .none: if !storm.life.isOpen(now: now) { try carryOut(storm, place, mayAlert: false, now) }
            }
        }
    }

    /// Withdraws the notifications of all storms that have ended, and closes these storms.
    func withdrawPast() throws {
        let (now, places) = (BGTaskScheduler.now, try store.places())
        for storm in try store.recentStorms(now: now) where storm.ends <= now {
            guard let place = places.first(where: { $0.id == storm.place }) else { continue }
            try carryOut(storm, place, mayAlert: false, now)
        }
    }

    /// Removes all notifications of these storms that are, or will be, on the screen.
    package static func withdraw(_ storms: [StormRecord]) {
        remove(storms.map(identifier).flatMap { [$0, $0 + snoozed, $0 + calledOff] })
    }

    /// The notification is shown before the store is changed. The notification contains the state of the storm, so the
    /// notification is not shown twice if the process crashes between the two steps.
    private func carryOut(_ storm: StormRecord, _ place: Place, mayAlert: Bool, _ now: Date) throws {
        let answer = try self.answer(to: storm)
        var new = storm
        let commands = new.life.handle(.checked(answer, mayAlert: mayAlert, now: now))
        for command in commands { try perform(command, new, place) }
        if new.life.memory != storm.life.memory { try store.save(new.life.memory, of: storm) }
    }

    private func perform(_ command: StormLife.Command, _ storm: StormRecord, _ place: Place) throws {
        let center = UNUserNotificationCenter.current()
        switch command {
        case .alert:
            // The buttons are registered before each alert, because a manual check may be the first process that shows a
            // notification.
            Self.registerCategory()
            // Earlier notifications are removed, so that the new alert also appears if the user closed or snoozed the earlier,
            // weaker alert.
            Self.remove([Self.identifier(of: storm) + Self.snoozed, Self.identifier(of: storm) + Self.calledOff])
            try add(storm, place, isSilent: false)
        case .showSilently:
            if Self.bothIdentifiers(of: storm).contains(where: { center.progress(of: $0)?.state == .visible }) {
                try change(storm, place)
            } else {
                Self.registerCategory()
                try add(storm, place, isSilent: true)
            }
        case .update: try change(storm, place)
        case .callOff:
            for identifier in Self.bothIdentifiers(of: storm) {
                guard let (state, before) = center.progress(of: identifier), Self.isOf(storm, before) else { continue }
                let content = calledOffContent(storm, place)
                switch state {
                case .visible, .waiting: try center.updateNotification(withIdentifier: identifier) { _ in content }
                // The notification server removed the notification, so a change of its text would not be shown. The notification
                // is added again.
                case .left: try Self.add(identifier, content)
                case .dismissed, .ended, .unseen, .withdrawn: break
                }
            }
        case .withdraw: Self.withdraw([storm])
        case .openPhotoRequest: try store.openPhotoRequest(of: storm, now: BGTaskScheduler.now)
        case .closePhotoRequest:
            let isOver = storm.life.outlook != .notExpected
            try store.closePhotoRequest(of: storm, isOver ? "the storm is over" : "the storm is no longer expected")
        }
    }

    // MARK: The notification

    /// Reads the state of a storm's notifications.
    private func answer(to storm: StormRecord) throws -> StormNotificationState {
        let center = UNUserNotificationCenter.current()
        let found = Self.bothIdentifiers(of: storm).map { identifier in
            center.progress(of: identifier).flatMap { Self.isOf(storm, $0.content) ? $0 : nil }
        }
        let (own, snoozed) = (found[0], found[1])
        let steps = found.map { $0.map { Self.memory(in: $0.content)?.step ?? 0 } ?? -1 }
        let isSnoozed =
            snoozed != nil && steps[1] >= steps[0] && own?.state != .waiting && own?.state != .visible && own?.state != .left
        let state = (isSnoozed ? snoozed : own)?.state
        return StormNotificationState(
            isSnoozed && state == .waiting ? .snoozed : state.map(StormNotificationState.State.init) ?? .none,
            memory: found.compactMap { $0.flatMap { Self.memory(in: $0.content) } }.max { $0.step < $1.step },
            hasPhoto: try store.hasPhoto(of: storm))
    }

    private static func remove(_ identifiers: [String]) {
        UNUserNotificationCenter.current().removePendingNotificationRequests(withIdentifiers: identifiers)
        UNUserNotificationCenter.current().removeDeliveredNotifications(withIdentifiers: identifiers)
    }

    private static func bothIdentifiers(of storm: StormRecord) -> [String] {
        [identifier(of: storm), identifier(of: storm) + snoozed]
    }

    private static func identifier(of storm: StormRecord) -> String { identifier(ofStorm: "\(storm.id ?? 0)") }

    /// The identifier of a storm's notification.
    package static func identifier(ofStorm id: String) -> String { "storm-\(id)" }

    /// The suffix of the identifier of a snoozed notification.
    static let snoozed = "-snoozed"
    /// The suffix of an identifier that earlier versions used for storms that were no longer expected.
    private static let calledOff = "-called-off"

    private func add(_ storm: StormRecord, _ place: Place, isSilent: Bool) throws {
        let picture = StormPicture(storm, place, store)
        let content = content(storm, place, picture)
        if isSilent { (content.interruptionLevel, content.sound) = (.passive, nil) }
        try withExtendedLifetime(picture) { try Self.add(Self.identifier(of: storm), content) }
    }

    private static func add(_ identifier: String, _ content: UNNotificationContent) throws {
        let request = UNNotificationRequest(identifier: identifier, content: content, trigger: nil, alertsOncePerContent: true)
        let failure = Failure()
        UNUserNotificationCenter.current().add(request) { failure.set($0) }
        if let error = failure.error { throw error }
    }

    /// Changes the text of a visible or waiting notification, if the text differs.
    private func change(_ storm: StormRecord, _ place: Place) throws {
        for identifier in Self.bothIdentifiers(of: storm) {
            var picture: StormPicture?
            try UNUserNotificationCenter.current().updateNotification(withIdentifier: identifier) { before in
                let content = content(storm, place, nil)
                let isSame =
                    (before.title, before.body, before.expirationDate) == (content.title, content.body, content.expirationDate)
                guard Self.isOf(storm, before), !isSame else { return nil }
                picture = StormPicture(storm, place, store)
                content.attachments = [picture?.attachment].compactMap { $0 }
                return content
            }
            extendLifetime(picture)
        }
    }

    /// Returns the number of the storm that a notification shows. `nil` if the notification shows no storm.
    static func number(ofStormIn userInfo: [AnyHashable: Any]) -> Int64? {
        (userInfo["storm"] as? NSNumber)?.int64Value ?? (userInfo["storm"] as? Int).map(Int64.init)
    }

    private static func memory(in content: UNNotificationContent) -> StormLife.Memory? {
        (content.userInfo["life"] as? String).flatMap { try? JSONDecoder().decode(StormLife.Memory.self, from: Data($0.utf8)) }
    }

    /// The maximum difference in seconds between the beginning of a storm in its notification and its beginning in the store. If
    /// the difference is larger, the notification is about another storm.
    private static let longestMove: Double = 43_200

    /// Returns whether a notification is about this storm. A store that was lost or restored from a backup reuses numbers, so the
    /// beginnings of the storms are also compared.
    private static func isOf(_ storm: StormRecord, _ content: UNNotificationContent) -> Bool {
        guard number(ofStormIn: content.userInfo) == storm.id,
            let from = (content.userInfo["from"] as? NSNumber)?.doubleValue ?? content.userInfo["from"] as? Double
        else { return false }
        // The beginning of a warning may move by days. The beginning that was stored with the alert does not change, so this
        // beginning is compared first.
        if let shown = storm.life.shown, let carried = memory(in: content)?.phase.shown,
            shown.alerted.begins == carried.alerted.begins
        {
            return true
        }
        return abs(from - storm.begins.timeIntervalSince1970) <= longestMove
    }

    private func content(_ storm: StormRecord, _ place: Place, _ picture: StormPicture?) -> UNMutableNotificationContent {
        let content = bareContent(storm, place)
        let severity = storm.life.level
        content.title = StormText.title(place: place.name, severity)
        let body = StormText.body(
            storm.reasons, timeZone: place.zone, locale: UserLocale.current, units: .ofPerson, now: BGTaskScheduler.now)
        content.body = [body, StormText.headline(storm.reasons)].compactMap { $0 }.joined(separator: "\n")
        content.categoryIdentifier = Self.category
        // The notification stays on the screen until the user responds. Only an extreme storm is shown in quiet hours.
        content.interruptionLevel = severity == .extreme ? .critical : .timeSensitive
        content.sound = .default
        content.textWithoutButtons = "Run in a terminal: stormy report --open, or stormy upload PHOTO"
        content.attachments = [picture?.attachment].compactMap { $0 }
        return content
    }

    private func calledOffContent(_ storm: StormRecord, _ place: Place) -> UNMutableNotificationContent {
        let content = bareContent(storm, place)
        content.title = StormText.calledOff(place: place.name)
        content.body = StormText.calledOffBody(storm.reasons)
        // The notification has no buttons, because there is nothing to photograph.
        content.categoryIdentifier = Self.calledOffCategory
        content.interruptionLevel = .passive
        return content
    }

    private func bareContent(_ storm: StormRecord, _ place: Place) -> UNMutableNotificationContent {
        let content = UNMutableNotificationContent()
        content.expirationDate = storm.ends
        content.userInfo = ["storm": storm.id ?? 0, "place": place.name, "from": storm.begins.timeIntervalSince1970]
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        if let life = try? encoder.encode(storm.life.memory) { content.userInfo["life"] = String(decoding: life, as: UTF8.self) }
        return content
    }
}

extension StormNotificationState.State {
    fileprivate init(_ progress: NotificationProgress) {
        self =
            switch progress {
            case .waiting: .waiting
            case .visible, .left: .visible
            case .dismissed: .dismissed
            case .ended: .ended
            case .unseen: .unseen
            case .withdrawn: .withdrawn
            }
    }
}

/// The error that a completion handler received.
private final class Failure: @unchecked Sendable {  // because the handler is called before `add` returns
    private(set) var error: (any Error)?

    func set(_ error: (any Error)?) { self.error = error }
}
