import BackgroundNotices
import Foundation
import Testing

@testable import DesktopServices

extension RealDesktop {
    /// Tests of calls that differ between notification servers. The test doubles report the names of real servers.
    @Suite struct Habits {
        let events = EventFeed<PresenterEvent>()
        let known = KnownServer()

        private func withServer(
            _ name: String, specification: String = "1.2", capabilities: [String] = ["actions", "body", "body-markup"],
            _ body: (DesktopPresenter, HabitServer) async throws -> Void
        ) async throws {
            let bus = try PrivateBus()
            defer { bus.stop() }
            let server = try HabitServer(on: bus, name: name, specification: specification, capabilities: capabilities)
            defer { server.stop() }
            let pixels = NoticePixels(line: "1 1 3 /wCA")
            let presenter = DesktopPresenter(
                loop: RealDesktop.loop, appName: "Stormy", pictures: { $0 == "picture" ? pixels : nil },
                handler: known.ear(events))
            defer { presenter.stop() }
            presenter.connect(busAddress: bus.address)
            try await body(presenter, server)
        }

        private func notice() -> Notice {
            var notice = Notice(
                identifier: "a", appName: "Stormy", desktopEntry: "stormy", iconName: "an-icon-that-nobody-has", title: "Storm",
                body: "Take the washing in.",
                actions: [NoticeAction(key: "default", label: "Open"), NoticeAction(key: "photo", label: "Add photo…")],
                soundName: "message-new-instant", isPersistent: true)
            (notice.percent, notice.picture) = (40, "picture")
            return notice
        }

        @Test func `text replaces the buttons or the body that a server cannot show`() async throws {
            var plain = notice()
            plain.withoutButtons = "In a terminal: stormy report"
            let shown = plain
            try await withServer("another", capabilities: ["body"]) { presenter, server in
                presenter.present(shown)
                let call = try server.nextCall()
                #expect(call.body == "Take the washing in.\nIn a terminal: stormy report")
                #expect(call.actions.isEmpty && call.timeout == -1)
                #expect(known.hasButtons == false)
            }
            try await withServer("another", capabilities: ["actions"]) { presenter, server in
                presenter.present(shown)
                let call = try server.nextCall()
                #expect((call.title, call.body) == ("Storm: Take the washing in.", ""))
                #expect(known.hasButtons == true)
            }
        }

        @Test(arguments: ["another 1", "another 2"])
        func `a server that draws no buttons receives the buttons and the text that replaces them`(_ remembered: String)
            async throws
        {
            var notice = notice()
            notice.withoutButtons = "In a terminal: stormy report"
            notice.serversWithoutButtons = [remembered]
            let shown = notice
            try await withServer("another") { presenter, server in
                presenter.present(shown)
                let call = try server.nextCall()
                let words = remembered == "another 1" ? "\nIn a terminal: stormy report" : ""
                #expect(call.body == "Take the washing in." + words)
                #expect(call.actions == ["default", "Open", "photo", "Add photo…"] && call.timeout == 0)
            }
        }

        /// Plasma reports do-not-disturb as a property.
        @Test func `do-not-disturb of Plasma is reported`() async throws {
            try await withServer("Plasma", capabilities: ["actions", "body", "inhibitions"]) { presenter, server in
                presenter.present(notice())
                _ = try server.nextCall()
                for isOn in [true, false] {
                    try server.inhibit(isOn)
                    _ = try await events.first { $0 == .doNotDisturb(isOn) }
                }
            }
        }

        /// xfce4-notifyd draws a progress bar instead of all other content. LXQt draws a button for the default action.
        @Test(arguments: ["Xfce Notify Daemon", "lxqt-notificationd", "another"])
        func `a progress value and a default label are left out for servers that draw them badly`(_ name: String) async throws {
            try await withServer(name) { presenter, server in
                presenter.present(notice())
                let call = try server.nextCall()
                #expect(call.actions == ["default", name == "another" ? "Open" : "", "photo", "Add photo…"])
                #expect(call.hints["value"] == (name == "Xfce Notify Daemon" ? nil : "40"))
                #expect(call.body == "Take the washing in.", "the body does not contain the progress in words")
                #expect(call.icon == "", "a name that no theme has is drawn as a broken image")
                #expect(call.hints["image-data"] == "pixels" || call.hints["image-data"]?.contains("dbus.Array") == true)
                #expect((call.timeout, call.hints["sound-name"]) == (0, "message-new-instant"))
                // The presenter reports the number that the server assigned, although the call was changed before the server
                // received it.
                guard case .presented("a", let id) = try await events.first(where: { $0 != .serverAppeared }) else {
                    throw FixtureFailure("not shown")
                }
                try server.press(id, "photo")
                guard case .activated("a", id, "photo", _) = try await events.first(where: { $0 != .serverAppeared }) else {
                    throw FixtureFailure("not heard")
                }
            }
        }

        /// If a notification never expires, notify-osd shows it as a modal dialog.
        @Test func `a notification does not stay on a server without buttons`() async throws {
            try await withServer("notify-osd", specification: "1.1", capabilities: ["body"]) { presenter, server in
                presenter.present(notice())
                let call = try server.nextCall()
                #expect(call.actions == [] && call.timeout == -1)
                #expect(call.hints["image_data"] != nil && call.hints["image-data"] == nil)
            }
        }

        @Test func `a sound file replaces the sound name`() async throws {
            try await withServer("another") { presenter, server in
                var notice = notice()
                notice.soundFile = "/usr/share/sounds/ping.oga"
                presenter.present(notice)
                let call = try server.nextCall()
                #expect(call.hints["sound-file"] == "/usr/share/sounds/ping.oga" && call.hints["sound-name"] == nil)
            }
        }

        /// If the server refuses a notification, only this notification fails. If the server crashes, the server is treated as
        /// missing. If the server does not respond, it may still show the notification.
        @Test(arguments: [HabitServer.FirstCall.isRefused, .kills, .isLost])
        func `a refusal, a crash and a missing response are distinct failures`(_ fate: HabitServer.FirstCall) async throws {
            let bus = try PrivateBus()
            defer { bus.stop() }
            let server = try HabitServer(on: bus, name: "another", firstCall: fate)
            defer { server.stop() }
            let presenter = DesktopPresenter(loop: RealDesktop.loop, appName: "Stormy", handler: known.ear(events))
            defer { presenter.stop() }
            presenter.connect(busAddress: bus.address)
            presenter.present(notice())
            let event = try await events.first {
                if case .failed = $0 { true } else { false }
            }
            guard case .failed("a", let failure) = event else { throw FixtureFailure("unexpected: \(event)") }
            switch (fate, failure) {
            case (.isRefused, .refused(let why)):
                #expect(why.contains("ExcessNotificationGeneration"))
                presenter.present(notice())
                _ = try await events.first { if case .presented = $0 { true } else { false } }
            case (.kills, .noServer), (.isLost, .unanswered): break
            default: Issue.record("\(fate): \(failure)")
            }
        }

        @Test func `a notification that is shown again is silent`() async throws {
            try await withServer("another") { presenter, server in
                var again = notice()
                again.isQuiet = true
                presenter.present(again)
                let call = try server.nextCall()
                #expect(call.hints["sound-name"] == nil && call.hints["suppress-sound"] != nil)
            }
        }

        /// Plasma 6 sends no signal when a notification with buttons leaves the screen. If a notification with buttons is
        /// replaced, Plasma keeps the replacement in its history.
        @Test(arguments: [("Plasma", true), ("Plasma", false), ("another", true), ("another", false)])
        func `an alert is a new notification on Plasma, and a replacement elsewhere`(_ name: String, _ alerts: Bool) async throws
        {
            try await withServer(name) { presenter, server in
                let closings = try server.watch("org.freedesktop.Notifications")
                defer { closings.stop() }
                func present(_ title: String) async throws -> UInt32 {
                    var notice = notice()
                    (notice.title, notice.alerts) = (title, alerts)
                    presenter.present(notice)
                    let event = try await events.first { if case .presented = $0 { true } else { false } }
                    guard case .presented(_, let number) = event else { throw FixtureFailure("not shown") }
                    return number
                }
                let first = try await present("Storm")
                #expect(try server.nextCall().replaces == 0)
                let second = try await present("Severe storm")
                let isNew = name == "Plasma" && alerts
                #expect(try server.nextCall().replaces == (isNew ? 0 : first))
                #expect((second != first) == isNew)
                if isNew { #expect(try closings.firstLine() == "(uint32 \(first), uint32 3)") }
                // The buttons of the new notification work.
                try server.press(second, "photo")
                let heard = try await events.first { if case .activated = $0 { true } else { false } }
                guard case .activated("a", second, "photo", _) = heard else { throw FixtureFailure("unexpected: \(heard)") }
            }
        }

        @Test func `an alert closes what an earlier process showed on Plasma`() async throws {
            try await withServer("Plasma") { presenter, server in
                presenter.query()
                _ = try await events.first { $0 == .serverAnswers }
                let closings = try server.watch("org.freedesktop.Notifications")
                defer { closings.stop() }
                presenter.adoptNotification(identifier: "a", serverID: 7, of: known.identity)
                var notice = notice()
                notice.alerts = true
                presenter.present(notice, replacing: 7, of: known.identity)
                #expect(try server.nextCall().replaces == 0)
                #expect(try closings.firstLine() == "(uint32 7, uint32 3)")
                let event = try await events.first { $0 != .serverAppeared }
                #expect(event == .presented(identifier: "a", serverID: 1), "the closed notification is not reported")
            }
        }

        /// Plasma has a text field for replies. On other servers the reply button would send no text, so the button is left out.
        @Test(arguments: [true, false])
        func `a text field is offered only to servers that send the text`(_ hasFields: Bool) async throws {
            try await withServer("another", capabilities: ["actions", "body"] + (hasFields ? ["inline-reply"] : [])) {
                presenter, server in
                var notice = notice()
                notice.actions[1].field = NoticeAction.Field(send: "Send", placeholder: "What is it like?")
                presenter.present(notice)
                let call = try server.nextCall()
                #expect(call.actions == ["default", "Open"] + (hasFields ? ["inline-reply", "Add photo…"] : []))
                #expect(call.hints["x-kde-reply-placeholder-text"] == (hasFields ? "What is it like?" : nil))
                #expect(call.hints["x-kde-reply-submit-button-text"] == (hasFields ? "Send" : nil))
                guard hasFields, case .presented("a", let id) = try await events.first(where: { $0 != .serverAppeared }) else {
                    return #expect(!hasFields)
                }
                try server.reply(id, "Wild")
                let heard = try await events.first { $0 != .serverAppeared }
                #expect(heard == .replied(identifier: "a", serverID: id, text: "Wild"))
            }
        }

        /// Docks read these signals to show the badge number.
        @Test func `the badge number is broadcast to docks`() async throws {
            try await withServer("another") { presenter, server in
                let watch = try server.watch("com.canonical.Unity.LauncherEntry")
                defer { watch.stop() }
                for (count, visible) in [(3, "true"), (0, "false")] {
                    presenter.showBadge(count, desktopEntry: "stormy")
                    let line = try watch.firstLine()
                    #expect(line.contains("application://stormy.desktop") && line.contains("int64 \(count)"), "\(line)")
                    #expect(line.contains("'count-visible': <\(visible)>"), "\(line)")
                }
            }
        }

        /// The process that showed the notifications was killed, and another process is notified when the user presses their
        /// buttons.
        @Test func `buttons of an earlier process are reported`() async throws {
            try await withServer("another") { presenter, server in
                presenter.query()
                _ = try await events.first { $0 == .serverAnswers }
                for (identifier, number) in [("a", 7), ("b", 8)] as [(String, UInt32)] {
                    presenter.adoptNotification(identifier: identifier, serverID: number, of: known.identity)
                }
                presenter.adoptNotification(identifier: "c", serverID: 9, of: "another bus's")
                presenter.query()
                _ = try await events.first { $0 == .serverAnswers }
                try server.press(9, "photo")
                try server.press(7, "photo")
                #expect(
                    try await events.next()
                        == .activated(identifier: "a", serverID: 7, action: "photo", activationToken: "token-1"))
                try server.dismiss(8)
                #expect(try await events.next() == .closed(identifier: "b", serverID: 8, .dismissed))
                // If a notification is shown again, a button press is still reported only once.
                presenter.present(notice(), replacing: 7, of: known.identity)
                #expect(try server.nextCall().replaces == 7)
                #expect(try await events.next() == .presented(identifier: "a", serverID: 7))
                try server.press(7, "default")
                guard case .activated("a", 7, "default", _) = try await events.next() else { throw FixtureFailure("not heard") }
                try server.dismiss(7)
                #expect(try await events.next() == .closed(identifier: "a", serverID: 7, .dismissed))
            }
        }

        /// The call of `Notify` blocks the event loop. The reply to this call is therefore handled before signals that arrived
        /// earlier.
        @Test(arguments: [true, false])
        func `signals that arrive before the response to a replacement belong to the old content`(_ isOfThisProcess: Bool)
            async throws
        {
            try await withServer("another", capabilities: ["actions", "body", "inline-reply"]) { presenter, server in
                presenter.query()
                _ = try await events.first { $0 == .serverAnswers }
                func next() async throws -> PresenterEvent { try await events.first { $0 != .serverAppeared } }
                let number: UInt32 = isOfThisProcess ? 1 : 7
                if isOfThisProcess {
                    presenter.present(notice())
                    #expect(try server.nextCall().replaces == 0)
                    #expect(try await next() == .presented(identifier: "a", serverID: number))
                } else {
                    presenter.adoptNotification(identifier: "a", serverID: number, of: known.identity)
                }
                try server.closeBeforeReply()
                presenter.present(notice(), replacing: number, of: known.identity)
                let press = PresenterEvent.activated(
                    identifier: "a", serverID: number, action: "photo", activationToken: "token-1")
                #expect(try await next() == press)
                #expect(try await next() == .replied(identifier: "a", serverID: number, text: "Wild"))
                #expect(try await next() == .closed(identifier: "a", serverID: number, .dismissed))
                #expect(try await next() == .presented(identifier: "a", serverID: number))
                #expect(try server.nextCall().replaces == number)
                // The new content can be pressed, replaced and closed.
                try server.press(number, "photo")
                #expect(try await next() == press)
                presenter.present(notice())
                #expect(try await next() == .presented(identifier: "a", serverID: number))
                #expect(try server.nextCall().replaces == number)
                try server.dismiss(number)
                #expect(try await next() == .closed(identifier: "a", serverID: number, .dismissed))
            }
        }

        /// The test calls `adoptNotification` before `connect`.
        @Test func `notifications that are taken over before the bus connects report their buttons`() async throws {
            let bus = try PrivateBus()
            defer { bus.stop() }
            var identity: String?
            try await withServer(on: bus) { presenter, _ in
                presenter.connect(busAddress: bus.address)
                presenter.query()
                _ = try await events.first { $0 == .serverAnswers }
                identity = known.identity
            } after: { presenter, server in
                presenter.adoptNotification(identifier: "a", serverID: 7, of: identity)
                presenter.connect(busAddress: bus.address)
                presenter.query()
                _ = try await events.first { $0 == .serverAnswers }
                try server.press(7, "photo")
                let heard = try await events.first { if case .activated = $0 { true } else { false } }
                #expect(heard == .activated(identifier: "a", serverID: 7, action: "photo", activationToken: "token-1"))
            }
        }

        /// Runs two presenters with one server, one after the other.
        private func withServer(
            on bus: PrivateBus, _ first: @escaping (DesktopPresenter, HabitServer) async throws -> Void,
            after second: @escaping (DesktopPresenter, HabitServer) async throws -> Void
        ) async throws {
            let server = try HabitServer(on: bus, name: "another")
            defer { server.stop() }
            for body in [first, second] {
                let presenter = DesktopPresenter(loop: RealDesktop.loop, appName: "Stormy", handler: known.ear(events))
                defer { presenter.stop() }
                try await body(presenter, server)
            }
        }

        @Test(arguments: ["dunst", "gnome-shell"])
        func `a notification of an earlier process is unheard on servers that notify only the sender`(
            _ name: String
        ) async throws {
            try await withServer(name) { presenter, _ in
                presenter.query()
                _ = try await events.first { $0 == .serverAnswers }
                presenter.adoptNotification(identifier: "a", serverID: 7, of: known.identity)
                #expect(try await events.first { $0 != .serverAppeared } == .unheard(identifier: "a", serverID: 7))
            }
        }
    }
}
