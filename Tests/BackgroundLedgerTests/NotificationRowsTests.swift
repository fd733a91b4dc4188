@testable import BackgroundLedger
import BackgroundNotices
import Foundation
import Testing

/// Tests of notifications that are added, and added again with equal or different content.
@Suite struct NotificationRowsTests {
    private let test: TestLedger
    private let ledger: Ledger
    private let now = TestLedger.now

    init() throws {
        test = try TestLedger()
        ledger = try test.open()
    }

    private func content(_ title: String) -> NotificationContent {
        NotificationContent(
            title: title, subtitle: "", body: "", categoryIdentifier: "", threadIdentifier: "", userInfo: "{}", sound: nil,
            interruptionLevel: 1, badge: nil)
    }

    @discardableResult
    private func add(
        _ title: String, due: Date? = nil, at date: Date? = nil, oncePerContent: Bool = false
    ) throws -> NotificationRecord {
        try ledger.write { transaction in
            try transaction.addNotification(
                "n", content(title), dueAt: due, oncePerContent: oncePerContent, now: date ?? now)
            return try #require(try transaction.notification("n"))
        }
    }

    private func change(_ body: (inout NotificationRecord) -> Void) throws {
        try ledger.write { transaction in
            var record = try #require(try transaction.notification("n"))
            body(&record)
            try transaction.save(record)
        }
    }

    /// A notification waited for the delegate's response. This notification is shown once per content, even if the delegate
    /// suppressed the sound. The response does not apply to a later notification that did not wait for a response.
    @Test func `the response of a delegate applies only to the notification that was held`() throws {
        let test = try TestLedger()
        let ledger = try test.open()
        let now = Date(timeIntervalSince1970: 1_800_000_000)
        let words = NotificationContent(
            title: "a", subtitle: "", body: "", categoryIdentifier: "", threadIdentifier: "", userInfo: "{}", sound: "bell",
            interruptionLevel: 1, badge: nil)
        func hold(_ transaction: LedgerTransaction) throws -> Bool {
            try transaction.addNotification("n", words, dueAt: nil, oncePerContent: true, heldUntil: now + 5, now: now)
        }
        try ledger.write { transaction in
            #expect(try hold(transaction))
            #expect(try transaction.notification("n")?.isHeld(now: now + 1) == true)
            try transaction.applyPresentation("n", revision: 1, [.banner], now: now, zone: .gmt)
            var told = try #require(try transaction.notification("n"))
            #expect(told.schedule == nil && told.dueAt == nil && !told.isHeld(now: now))
            #expect(told.shownContent.sound == nil && told.content.sound == "bell")
            told.handle(.handedOver)
            told.handle(.presented(serverID: 1, now: now))
            try transaction.save(told)
            #expect(try !hold(transaction), "the notification was already shown, although without a sound")
            let later = NoticeSchedule(.interval(3_600, repeats: false), now: now, zone: .gmt)
            try transaction.addNotification("n", words, dueAt: nil, schedule: later, now: now)
            try transaction.applyPresentation("n", revision: 1, [], now: now, zone: .gmt)
            #expect(try transaction.notification("n")?.life.isWaiting == true, "the presentation was for an earlier revision")
        }
    }

    /// A process delayed the notification until its delegate responds. The process has ended, and its clock was one year ahead.
    @Test func `a wrong clock does not extend the hold of a notification`() throws {
        let now = Date(timeIntervalSince1970: 1_800_000_000)
        let test = try TestLedger()
        let ledger = try test.open()
        let record = try ledger.write { transaction in
            let words = NotificationContent(
                title: "a", subtitle: "", body: "", categoryIdentifier: "", threadIdentifier: "", userInfo: "{}", sound: nil,
                interruptionLevel: 1, badge: nil)
            try transaction.addNotification("n", words, dueAt: nil, heldUntil: now + 5, now: now)
            return try #require(try transaction.notification("n"))
        }
        #expect(record.isHeld(now: now) && !record.isHeld(now: now + 5) && !record.isHeld(now: now - 31_536_000))
    }

    /// The response of the delegate for one occurrence does not apply to the next occurrence.
    @Test func `the delegate decides about each occurrence of a repeated notification`() throws {
        let test = try TestLedger()
        let ledger = try test.open()
        let start = Date(timeIntervalSince1970: 1_800_000_000)
        try ledger.write { transaction in
            let words = NotificationContent(
                title: "a", subtitle: "", body: "", categoryIdentifier: "", threadIdentifier: "", userInfo: "{}", sound: "bell",
                interruptionLevel: 1, badge: nil)
            let schedule = NoticeSchedule(.interval(60, repeats: true), now: start, zone: .gmt)
            try transaction.addNotification("n", words, dueAt: nil, schedule: schedule, now: start)
            func held(_ due: Date) throws -> NotificationRecord? {
                try transaction.holdNotification("n", dueAt: due, now: due - 0.5)
            }
            #expect(try held(start + 61) == nil, "no notification is due at that time")
            #expect(try held(start + 60)?.isHeld(now: start + 60) == true)
            #expect(try held(start + 60) == nil, "another process already decides")
            try transaction.applyPresentation("n", revision: 1, [.list], now: start + 60, zone: .gmt)
            var record = try #require(try transaction.notification("n"))
            #expect(record.life.isWaiting && record.shownContent.interruptionLevel == 0)
            record.handle(.handedOver)
            record.handle(.presented(serverID: 1, now: start + 60))
            record.consumeFireDate(now: start + 60, zone: .gmt)
            try transaction.save(record)
            // The delegate suppresses the second occurrence, and responds before the agent has read the ledger.
            #expect(try held(start + 120) != nil)
            try transaction.applyPresentation("n", revision: 1, [], now: start + 120, zone: .gmt)
            record = try #require(try transaction.notification("n"))
            #expect(record.state == .delivered && record.schedule?.next == start + 180, "the notification on the screen stays")
            // For the third occurrence, no process delays the notification for a response of the delegate.
            record.startNextRepetition(now: start + 180)
            #expect(record.life.isWaiting && record.presentation == nil && record.dueAt == start + 180)
        }
    }

    @Test func `a new notification is pending`() throws {
        let record = try add("a")
        #expect(record.state == .pending)
        #expect(record.revision == 1)
        #expect(record.createdAt == now)
    }

    @Test(arguments: [
        NotificationRecord.State.pending, .presenting, .delivered, .closed,
    ])
    func `equal content is shown once if the app requests it`(_ state: NotificationRecord.State) throws {
        try add("a")
        try change {
            $0.state = state
            $0.serverID = 7
        }
        let again = try add("a", at: now + 60, oncePerContent: true)
        #expect(again.state == state)
        #expect(again.revision == 1)
        #expect(again.serverID == 7)
        #expect(again.createdAt == now)
    }

    /// iOS behaves in the same way: if an app adds the notification "tide" every day, the notification alerts the user every
    /// day.
    @Test(arguments: [NotificationRecord.State.delivered, .closed])
    func `a notification that was shown is shown again if it is added again`(_ state: NotificationRecord.State) throws {
        try add("a")
        try change {
            $0.state = state
            $0.serverID = 7
        }
        let again = try add("a", at: now + 60)
        #expect(again.state == .pending)
        #expect(again.revision == 2)
        #expect(again.serverID == (state == .delivered ? 7 : nil), "the notification on the screen is replaced")
    }

    @Test(arguments: [NotificationRecord.State.pending, .presenting])
    func `a notification that is added twice before it is shown is shown once`(_ state: NotificationRecord.State) throws {
        try add("a")
        try change { $0.state = state }
        #expect(try add("a", at: now + 60).revision == 1)
    }

    @Test func `other content replaces the notification on the screen`() throws {
        try add("a")
        try change {
            $0.state = .delivered
            $0.serverID = 7
        }
        let record = try add("b")
        #expect(record.state == .pending)
        #expect(record.revision == 2)
        #expect(record.serverID == 7, "the number on the screen is replaced")
        #expect(record.content.title == "b")
    }

    @Test func `other content after the notification was closed is a new notification`() throws {
        try add("a")
        try change {
            $0.state = .closed
            $0.serverID = 7
            $0.endedAt = now
        }
        let record = try add("b")
        #expect(record.state == .pending)
        #expect(record.serverID == nil, "the number may belong to another notification now")
        #expect(record.endedAt == nil)
    }

    @Test(arguments: [NotificationRecord.State.withdrawing, .withdrawn])
    func `a withdrawn notification can be added again`(_ state: NotificationRecord.State) throws {
        try add("a")
        try change {
            $0.state = state
            $0.endedAt = now
        }
        let record = try add("a")
        #expect(record.state == .pending)
        #expect(record.revision == 2)
        #expect(record.endedAt == nil)
    }

    @Test func `another due time replaces the notification`() throws {
        try add("a", due: now + 10)
        #expect(try add("a", due: now + 10).revision == 1)
        let record = try add("a", due: now + 20)
        #expect(record.revision == 2)
        #expect(record.dueAt == now + 20)
    }

    @Test func `ended notifications are removed after 30 days if many newer ones have ended`() throws {
        try add("a")
        try change {
            $0.state = .closed
            $0.endedAt = now
        }
        func rowsAfter(days: Double) throws -> [String] {
            try ledger.write { transaction in
                try transaction.addNotification("other\(days)", content("x"), dueAt: nil, now: now + days * 86_400)
                return try transaction.notifications().map(\.identifier).filter { $0 == "n" }
            }
        }
        #expect(try rowsAfter(days: 29) == ["n"])
        // The newest rows are kept even if the clock is one year ahead.
        #expect(try rowsAfter(days: 366) == ["n"])
        try ledger.write { transaction in
            for number in 1...LedgerTransaction.endedNotificationLimit {
                let later = now + Double(number)
                try transaction.addNotification("later\(number)", content("x"), dueAt: nil, now: later)
                var row = try #require(try transaction.notification("later\(number)"))
                (row.state, row.endedAt) = (.closed, later)
                try transaction.save(row)
            }
        }
        #expect(try rowsAfter(days: 31) == [])
    }

    @Test func `categories are stored by name`() throws {
        let actions = [NoticeAction(key: "photo", label: "Add a photo")]
        try ledger.write { transaction in
            try transaction.setCategory("storm", actions: actions)
            try transaction.setCategory("old", actions: [])
            try transaction.deleteCategories(except: ["storm"])
        }
        #expect(try ledger.read { try $0.actions(ofCategory: "storm") } == actions)
        #expect(try ledger.read { try $0.actions(ofCategory: "old") } == [])
        #expect(try ledger.read { try $0.actions(ofCategory: "") } == [])
    }

    @Test func `a response is stored until it is delivered`() throws {
        let record = try add("a")
        try ledger.write { try $0.addResponse("photo", to: record, now: now) }
        let waiting = try ledger.read { try $0.undeliveredResponses() }
        #expect(waiting.map(\.action) == ["photo"])
        #expect(
            waiting.first?.content == record.content,
            "the response has the content that the notification had when the button was pressed")
        try ledger.write { try $0.responseWasDelivered(try #require(waiting.first?.id), now: now) }
        #expect(try ledger.read { try $0.undeliveredResponses() }.isEmpty)
    }

    /// If the app requests that each content is shown only once, a new picture does not show the notification again. The test
    /// also checks which attachment files must be kept.
    @Test func `attachment files are kept while a notification or a response needs them`() throws {
        func picture(_ file: String, _ digest: String) -> NotificationContent {
            var content = content("a")
            content.attachments = [NoticeAttachment(identifier: "p", type: "public.png", file: file, sha256: digest)]
            return content
        }
        func add(_ content: NotificationContent, once: Bool) throws -> Bool {
            try ledger.write { try $0.addNotification("n", content, dueAt: nil, oncePerContent: once, now: now) }
        }
        #expect(try add(picture("attachment-1", "aa"), once: true))
        #expect(try !add(picture("attachment-2", "aa"), once: true))
        #expect(try !add(picture("attachment-3", "bb"), once: true))
        #expect(try !add(content("a"), once: true))
        #expect(try ledger.read { try $0.spoolFiles() } == ["attachment-1"])
        #expect(try ledger.read { try $0.notification("n")?.content } == picture("attachment-1", "aa"))
        // Without `once`, another picture is treated as different content. A copy of the same picture is not treated as different
        // content.
        #expect(try !add(picture("attachment-4", "aa"), once: false))
        #expect(try add(picture("attachment-5", "bb"), once: false))
        #expect(try ledger.read { try $0.spoolFiles() } == ["attachment-5"])
        // The user pressed an action, and the notification was closed. The app has not received the response yet.
        try ledger.write { transaction in
            var record = try #require(try transaction.notification("n"))
            try transaction.addResponse("snooze", to: record, now: now)
            record.handle(.takenBack(now: now))
            try transaction.save(record)
        }
        #expect(try ledger.read { try $0.spoolFiles() } == ["attachment-5"])
        try ledger.write { transaction in
            for response in try transaction.undeliveredResponses() {
                try transaction.responseWasDelivered(response.id!, now: now)
            }
        }
        #expect(try ledger.read { try $0.spoolFiles() } == [])
        try change { $0.handle(.added) }
        try change { $0.handle(.takenBack(now: now)) }
        #expect(try ledger.read { try $0.spoolFiles() } == [])
    }
}
