import BackgroundLedger
import BackgroundRuntime
import BackgroundTasks
import BackgroundTasksTesting
import Foundation
import Synchronization
import Testing
import UserNotifications

/// Tests of `UNUserNotificationCenter` in the forms that iOS code uses.
@Suite struct NotificationAPITests {
    private func center() -> UNUserNotificationCenter { .current() }

    private func content(_ title: String = "Storm", category: String = "") -> UNMutableNotificationContent {
        let content = UNMutableNotificationContent()
        (content.title, content.categoryIdentifier) = (title, category)
        return content
    }

    // MARK: Delegates

    private final class WithHandler: NSObject, UNUserNotificationCenterDelegate, Sendable {
        let heard = Mutex<[String]>([])

        func userNotificationCenter(
            _ center: UNUserNotificationCenter, didReceive response: UNNotificationResponse,
            withCompletionHandler completionHandler: @escaping () -> Void
        ) {
            heard.withLock { $0.append(response.actionIdentifier) }
            completionHandler()
            // Some apps call the handler twice.
            completionHandler()
        }
    }

    private final class WithSendableHandler: NSObject, UNUserNotificationCenterDelegate, Sendable {
        let heard = Mutex<[String]>([])

        func userNotificationCenter(
            _ center: UNUserNotificationCenter, didReceive response: UNNotificationResponse,
            withCompletionHandler completionHandler: @escaping @Sendable () -> Void
        ) {
            heard.withLock { $0.append(response.actionIdentifier) }
            DispatchQueue.global().async { completionHandler() }
        }
    }

    private final class WithAsync: NSObject, UNUserNotificationCenterDelegate, Sendable {
        let heard = Mutex<[String]>([])

        func userNotificationCenter(_ center: UNUserNotificationCenter, didReceive response: UNNotificationResponse) async {
            await Task.yield()
            heard.withLock { $0.append(response.actionIdentifier) }
        }
    }

    @MainActor private final class OnMainActor: NSObject, UNUserNotificationCenterDelegate {
        nonisolated let heard = Mutex<[String]>([])

        func userNotificationCenter(_ center: UNUserNotificationCenter, didReceive response: UNNotificationResponse) async {
            MainActor.assertIsolated()
            heard.withLock { $0.append(response.actionIdentifier) }
        }
    }

    /// The launch ends only when the delegate has finished.
    @Test func `every form of didReceive is called`() async throws {
        let (one, two, three) = (WithHandler(), WithSendableHandler(), WithAsync())
        let four = await OnMainActor()
        let forms: [(any UNUserNotificationCenterDelegate, @Sendable () -> [String])] = [
            (one, { one.heard.withLock { $0 } }), (two, { two.heard.withLock { $0 } }), (three, { three.heard.withLock { $0 } }),
            (four, { four.heard.withLock { $0 } }),
        ]
        for (delegate, heard) in forms {
            nonisolated(unsafe) let delegate = delegate
            try await TestDriver.run(permitting: []) { driver in
                center().delegate = delegate
                center().setNotificationCategories([
                    UNNotificationCategory(
                        identifier: "c", actions: [UNNotificationAction(identifier: "photo", title: "Photo")],
                        intentIdentifiers: [])
                ])
                try await center().add(UNNotificationRequest(identifier: "n", content: content(category: "c"), trigger: nil))
                try await driver.advance(by: .seconds(1))
                #expect(driver.notifications.press("photo", on: "n"))
                let launch = try await driver.advanceToNextLaunch()
                #expect(launch.outcome == .completed)
                #expect(heard() == ["photo"], "\(type(of: delegate))")
            }
        }
    }

    private final class CompletesFirst: NSObject, UNUserNotificationCenterDelegate, Sendable {
        func userNotificationCenter(
            _ center: UNUserNotificationCenter, didReceive response: UNNotificationResponse,
            withCompletionHandler completionHandler: @escaping () -> Void
        ) {
            completionHandler()
            DispatchQueue.global().async {
                DispatchQueue.main.async {
                    try? BGTaskScheduler.shared.submit(BGAppRefreshTaskRequest(identifier: "sync"))
                }
            }
        }
    }

    /// Many delegates call the completion handler before they begin the work.
    @Test func `work that a delegate begins after it called the completion handler is kept`() async throws {
        let delegate = CompletesFirst()
        try await TestDriver.run(permitting: ["sync"]) { driver in
            BGTaskScheduler.shared.register(forTaskWithIdentifier: "sync", using: nil) { $0.setTaskCompleted(success: true) }
            center().delegate = delegate
            try await center().add(UNNotificationRequest(identifier: "n", content: content(), trigger: nil))
            try await driver.advance(by: .seconds(1))
            #expect(driver.notifications.press(on: "n"))
            #expect(try await driver.advanceToNextLaunch().outcome == .completed)
            #expect(try await driver.advanceToNextLaunch().identifier == "sync")
        }
    }

    private final class Replies: NSObject, UNUserNotificationCenterDelegate, Sendable {
        let heard = Mutex<[String]>([])

        func userNotificationCenter(_ center: UNUserNotificationCenter, didReceive response: UNNotificationResponse) async {
            let text = (response as? UNTextInputNotificationResponse)?.userText ?? "-"
            let said = "\(response.actionIdentifier.components(separatedBy: ".").last ?? ""): \(text)"
            heard.withLock { $0.append(said) }
        }
    }

    /// A dismissal is delivered if the category has the option `customDismissAction`.
    @Test func `a delegate receives typed text, and a dismissal if the category requests it`() async throws {
        let delegate = Replies()
        try await TestDriver.run(permitting: []) { driver in
            center().delegate = delegate
            let reply = UNTextInputNotificationAction(
                identifier: "reply", title: "Reply", options: [], textInputButtonTitle: "Send", textInputPlaceholder: "")
            center().setNotificationCategories([
                UNNotificationCategory(
                    identifier: "c", actions: [reply], intentIdentifiers: [], options: [.customDismissAction]),
                UNNotificationCategory(identifier: "d", actions: [], intentIdentifiers: []),
            ])
            for (identifier, category) in [("a", "c"), ("b", "c"), ("c", "d")] {
                try await center().add(
                    UNNotificationRequest(identifier: identifier, content: content(category: category), trigger: nil))
            }
            try await driver.advance(by: .seconds(1))
            #expect(driver.notifications.reply("Wild out here", on: "a"))
            try await driver.advance(by: .seconds(30))
            #expect(driver.notifications.dismiss("c") && driver.notifications.dismiss("b"))
            try await driver.advance(by: .seconds(30))
        }
        #expect(delegate.heard.withLock { $0 } == ["reply: Wild out here", "UNNotificationDismissActionIdentifier: -"])
    }

    @Test func `the badge shows the last number`() async throws {
        try await TestDriver.run(permitting: []) { driver in
            try await center().setBadgeCount(5)
            try await driver.advance(by: .seconds(1))
            #expect(driver.notifications.badge == 5)
            let content = self.content()
            content.badge = 2
            try await center().add(UNNotificationRequest(identifier: "n", content: content, trigger: nil))
            try await driver.advance(by: .seconds(1))
            #expect(driver.notifications.badge == 2)
            try await center().setBadgeCount(0)
            try await driver.advance(by: .seconds(1))
            #expect(driver.notifications.badge == 0)
        }
    }

    // MARK: Triggers

    @Test func `a daily notification is listed, shown and cancelled`() async throws {
        try await TestDriver.run(permitting: []) { driver in
            var noon = DateComponents()
            (noon.hour, noon.timeZone) = (12, .gmt)
            let trigger = UNCalendarNotificationTrigger(dateMatching: noon, repeats: true)
            let request = UNNotificationRequest(identifier: "noon", content: content(), trigger: trigger)
            try await center().add(request)
            #expect(await center().pendingNotificationRequests() == [request])
            let due = try #require(trigger.nextTriggerDate())
            try await driver.advance(by: .seconds(due.timeIntervalSince(driver.clock.date) - 1))
            #expect(driver.notifications.shown.isEmpty)
            for day in 1...3 {
                try await driver.advance(by: .seconds(day == 1 ? 2 : 86_400))
                #expect(driver.notifications.history.count == day)
                #expect(await center().pendingNotificationRequests() == [request], "it comes again")
                #expect(await center().deliveredNotifications().map(\.request) == [request])
            }
            center().removePendingNotificationRequests(withIdentifiers: ["noon"])
            #expect(await center().pendingNotificationRequests().isEmpty)
            #expect(driver.notifications.shown.count == 1, "the shown notification stays on the screen")
            try await driver.advance(by: .seconds(3 * 86_400))
            #expect(driver.notifications.history.count == 3)
        }
    }

    /// An agent sent the notification to a server and died. After the app has removed the notification, it must not be shown.
    @Test func `a notification that was sent to a server can be removed before it is shown`() async throws {
        try await TestDriver.run(permitting: []) { driver in
            try AppRuntime.shared.ledger().write { transaction in
                let words = NotificationContent(
                    title: "Storm", subtitle: "", body: "", categoryIdentifier: "", threadIdentifier: "", userInfo: "{}",
                    sound: nil,
                    interruptionLevel: 1, badge: nil)
                try transaction.addNotification("noon", words, dueAt: nil, now: driver.clock.date)
                var record = try #require(try transaction.notification("noon"))
                record.handle(.handedOver)
                try transaction.save(record)
            }
            center().removePendingNotificationRequests(withIdentifiers: ["noon"])
            try AppRuntime.shared.ledger().write { transaction in
                guard var record = try transaction.notification("noon") else { return }
                record.handle(.agentDied)
                try transaction.save(record)
            }
            try await driver.advance(by: .seconds(120))
            #expect(driver.notifications.history.isEmpty)
        }
    }

    @Test func `a trigger that never fires is refused`() async throws {
        try await TestDriver.run(permitting: []) { _ in
            var never = DateComponents()
            (never.month, never.day) = (2, 30)
            for trigger in [
                UNCalendarNotificationTrigger(dateMatching: never, repeats: true),
                UNCalendarNotificationTrigger(dateMatching: DateComponents(), repeats: false),
                UNLocationNotificationTrigger(region: NSObject(), repeats: false),
            ] {
                await #expect {
                    try await center().add(UNNotificationRequest(identifier: "n", content: content(), trigger: trigger))
                } throws: {
                    ($0 as? UNError)?.code == .notificationInvalidNoDate && !$0.localizedDescription.isEmpty
                }
            }
            #expect(UNCalendarNotificationTrigger(dateMatching: never, repeats: true).nextTriggerDate() == nil)
            #expect(await center().pendingNotificationRequests().isEmpty)
        }
    }

    // MARK: Values

    @Test func `contents, requests and triggers are compared and copied like values`() throws {
        let content = self.content()
        content.userInfo = ["b": 1, "a": ["x"]]
        let request = UNNotificationRequest(identifier: "n", content: content, trigger: nil)
        content.title = "changed"
        #expect(request.content.title == "Storm", "a request has a copy")
        let copy = try #require(request.content.mutableCopy() as? UNMutableNotificationContent)
        #expect(copy == request.content && copy.hash == request.content.hash)
        copy.relevanceScore = 0.5
        #expect(copy != request.content)
        #expect(Set([request, UNNotificationRequest(identifier: "n", content: request.content, trigger: nil)]).count == 1)
        let (one, two) = (
            UNTimeIntervalNotificationTrigger(timeInterval: 60, repeats: true),
            UNTimeIntervalNotificationTrigger(timeInterval: 60, repeats: false)
        )
        #expect(one != two && one == UNTimeIntervalNotificationTrigger(timeInterval: 60, repeats: true))
    }

    @Test func `every field of a content is read as it was written`() async throws {
        try await TestDriver.run(permitting: []) { driver in
            let content = self.content("Title", category: "category")
            (content.subtitle, content.body, content.threadIdentifier) = ("Subtitle", "Body", "thread")
            (content.badge, content.sound, content.interruptionLevel) = (3, .defaultCritical, .critical)
            (content.targetContentIdentifier, content.launchImageName, content.relevanceScore) = ("target", "image", 0.25)
            (content.filterCriteria, content.summaryArgument, content.summaryArgumentCount) = ("filter", "argument", 2)
            content.userInfo = ["id": 7]
            try await center().add(UNNotificationRequest(identifier: "n", content: content, trigger: nil))
            try await driver.advance(by: .seconds(1))
            let delivered = try #require(await center().deliveredNotifications().first)
            #expect(delivered.request.content == content)
            #expect(delivered.request.content.userInfo["id"] as? Int == 7)
            #expect(delivered.request.trigger == nil)
        }
    }

    @Test func `categories are read as they were written`() async throws {
        try await TestDriver.run(permitting: []) { _ in
            let field = UNTextInputNotificationAction(
                identifier: "reply", title: "Reply", options: [.authenticationRequired], textInputButtonTitle: "Send",
                textInputPlaceholder: "Text")
            let button = UNNotificationAction(
                identifier: "open", title: "Open", options: [.foreground], icon: UNNotificationActionIcon(systemImageName: "tray")
            )
            let categories: Set = [
                UNNotificationCategory(
                    identifier: "a", actions: [field, button], intentIdentifiers: ["intent"], hiddenPreviewsBodyPlaceholder: "%u",
                    categorySummaryFormat: "%u more", options: [.customDismissAction]),
                UNNotificationCategory(identifier: "b", actions: [], intentIdentifiers: []),
            ]
            center().setNotificationCategories(categories)
            #expect(await center().notificationCategories() == categories)
            center().setNotificationCategories([])
            #expect(await center().notificationCategories().isEmpty)
        }
    }

    @Test func `a localized string contains its arguments`() {
        func text(_ key: String, _ arguments: Any...) -> String {
            NSString.localizedUserNotificationString(forKey: key, arguments: arguments)
        }
        #expect(text("%@ has %d of 100 %%", "Anna", 7) == "Anna has 7 of 100 %")
        #expect(text("%2$@ before %1$@", "b", "a") == "a before b")
        #expect(text("%@ and %@ and %3$@", "one") == "one and %@ and %3$@", "a missing argument does not end the process")
        #expect(NSString.localizedUserNotificationString(forKey: "Storm", arguments: nil) == "Storm")
    }

    /// Most apps use this initializer.
    @Test func `a text input action has default texts`() {
        let action = UNTextInputNotificationAction(identifier: "reply", title: "Reply", options: [])
        #expect(action.textInputButtonTitle == "Send" && action.textInputPlaceholder.isEmpty)
    }

    /// Tests may override properties of a content in a subclass. A copy of the content would lose these overrides.
    @Test func `a request keeps a content of a subclass`() {
        final class Odd: UNNotificationContent, @unchecked Sendable {
            override var title: String { "odd" }
        }
        #expect(UNNotificationRequest(identifier: "n", content: Odd(), trigger: nil).content.title == "odd")
        let mutable = UNMutableNotificationContent()
        let request = UNNotificationRequest(identifier: "n", content: mutable, trigger: nil)
        mutable.title = "later"
        #expect(request.content.title.isEmpty)
    }

    @Test func `every completion handler is called with the result`() async throws {
        try await TestDriver.run(permitting: []) { driver in
            let center = self.center()
            try await center.add(UNNotificationRequest(identifier: "n", content: content(), trigger: nil))
            try await driver.advance(by: .seconds(1))
            #expect(
                await withCheckedContinuation { done in
                    center.requestAuthorization(options: [.alert]) { ok, _ in done.resume(returning: ok) }
                })
            let settings = await withCheckedContinuation { done in center.getNotificationSettings { done.resume(returning: $0) } }
            #expect(settings.authorizationStatus == .authorized && settings.alertSetting == .enabled)
            #expect(await settings == center.notificationSettings())
            #expect(
                await withCheckedContinuation { done in center.getPendingNotificationRequests { done.resume(returning: $0.count) }
                } == 0)
            #expect(
                await withCheckedContinuation { done in center.getDeliveredNotifications { done.resume(returning: $0.count) } }
                    == 1)
            #expect(
                await withCheckedContinuation { done in center.getNotificationCategories { done.resume(returning: $0.count) } }
                    == 0)
            let error = await withCheckedContinuation { done in center.setBadgeCount(-1) { done.resume(returning: $0) } }
            #expect((error as? UNError)?.code == .badgeInputInvalid)
            try await center.setBadgeCount(5)
        }
    }
}
