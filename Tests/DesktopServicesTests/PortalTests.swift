import BackgroundNotices
import Foundation
import Testing

@testable import DesktopServices

/// What a sandbox lets through to the notification server.
@Suite struct NotificationWayTests {
    @Test(
        arguments: [
            (nil, .server), ("[Application]\nname=org.example.Storm\n", .portal),
            ("[Application]\nname=a\n[Context]\nsockets=x11;session-bus;\n", .server),
            ("[Session Bus Policy]\norg.freedesktop.Notifications=talk\n", .server),
            ("[Session Bus Policy]\norg.freedesktop.*=talk\n", .server),
            ("[Session Bus Policy]\norg.freedesktop.Notifications=see\norg.freedesktop.FileManager1=talk\n", .portal),
            ("no key file", .portal), ("", .portal),
        ] as [(String?, NotificationWay)])
    func aSandboxSaysWhatItLetsThrough(_ info: String?, _ way: NotificationWay) {
        #expect(NotificationWay(flatpakInfo: info.map { Data($0.utf8) }) == way)
    }
}

extension RealDesktop {
    /// The notification portal, as a sandbox has it.
    @Suite struct Portal {
        let events = EventFeed<PresenterEvent>()
        let known = KnownServer()

        private func makePresenter(_ events: EventFeed<PresenterEvent>? = nil, _ known: KnownServer? = nil) -> DesktopPresenter {
            let pixels = NoticePixels(line: "1 1 3 /wCA")
            return DesktopPresenter(
                loop: RealDesktop.loop, appName: "Stormy", way: .portal, pictures: { $0 == "picture" ? pixels : nil },
                handler: (known ?? self.known).ear(events ?? self.events))
        }

        private func withPortal(
            version: Int = 2, purposes: [String] = [], categories: [String] = [],
            _ body: (DesktopPresenter, PortalServer, PrivateBus) async throws -> Void
        ) async throws {
            let bus = try PrivateBus()
            defer { bus.stop() }
            let portal = try PortalServer(on: bus, version: version, purposes: purposes, categories: categories)
            defer { portal.stop() }
            let presenter = makePresenter()
            defer { presenter.stop() }
            presenter.connect(busAddress: bus.address)
            try await body(presenter, portal, bus)
        }

        private func notice() -> Notice {
            var notice = Notice(
                identifier: "storm-1", appName: "Stormy", desktopEntry: "stormy", iconName: "an-icon-that-nobody-has",
                title: "Storm", body: "Wind < 100 km/h & <b>rain</b>", category: "weather.warning.extreme", urgency: .critical,
                actions: [NoticeAction(key: "default", label: "Open"), NoticeAction(key: "photo", label: "Add photo…")],
                soundName: "message-new-instant")
            notice.picture = "picture"
            return notice
        }

        private static let name = "Stormy/storm-1"

        private func next() async throws -> PresenterEvent { try await events.first { $0 != .serverAppeared } }

        private func number(_ identifier: String = "storm-1") async throws -> UInt32 {
            guard case .presented(identifier, let number) = try await next() else { throw FixtureFailure("not shown") }
            return number
        }

        @Test func version2IsToldEverythingItKnows() async throws {
            try await withPortal(categories: ["weather.warning.extreme"]) { presenter, portal, _ in
                presenter.present(notice())
                let call = try portal.nextCall()
                #expect((call.method, call.id) == ("add", Self.name) && known.hasButtons == true)
                let fields = try #require(call.fields)
                #expect(fields["title"] == "Storm" && fields["body"] == "Wind < 100 km/h & <b>rain</b>", "\(fields)")
                #expect(fields["priority"] == "urgent" && fields["sound"] == "default" && fields["display-hint"] == "show-as-new")
                #expect(fields["category"] == "weather.warning.extreme" && fields["default-action"] == "press.default")
                #expect(call.buttons == [["label": "Add photo…", "action": "press.photo"]])
                #expect(fields["icon"] == "file-descriptor" && call.picture == "89504e47", "a PNG")
                #expect(call.seals == 15, "nobody can change or grow it")
                let number = try await number()
                try portal.press(Self.name, "press.photo")
                #expect(
                    try await next()
                        == .activated(identifier: "storm-1", serverID: number, action: "photo", activationToken: "token-2"))
            }
        }

        /// A file in a sandbox is one that nobody outside sees: it goes by itself. What is none, or too large, is the default sound.
        @Test(arguments: ["a sound", "a pipe", "too much"]) func aSoundGoesByItself(_ what: String) async throws {
            let folder = try TemporaryFolder.make()
            defer { try? FileManager.default.removeItem(at: folder) }
            let path = folder.appendingPathComponent("ping.oga").path
            switch what {
            case "a pipe": #expect(mkfifo(path, 0o600) == 0)
            case "too much": try Data(count: 5_000_001).write(to: URL(fileURLWithPath: path))
            default: try Data(what.utf8).write(to: URL(fileURLWithPath: path))
            }
            try await withPortal { presenter, portal, _ in
                var notice = notice()
                notice.soundFile = path
                presenter.present(notice)
                let sound = try portal.nextCall().fields?["sound"]
                #expect(sound == (what == "a sound" ? "file-descriptor 15 a sound" : "default"))
            }
        }

        @Test func version1IsToldWhatItKnows() async throws {
            try await withPortal(version: 1, purposes: ["im.reply-with-text"]) { presenter, portal, _ in
                var notice = notice()
                (notice.urgency, notice.isPersistent) = (.normal, true)
                notice.actions.append(NoticeAction(key: "say", label: "Say"))
                notice.actions[2].field = NoticeAction.Field(send: "Send", placeholder: "What?")
                presenter.present(notice)
                let call = try portal.nextCall()
                let fields = try #require(call.fields)
                #expect(Set(fields.keys) == ["title", "body", "priority", "default-action", "icon"], "\(fields)")
                #expect(fields["priority"] == "high" && fields["icon"] == "bytes" && call.picture == "89504e47")
                #expect(call.buttons?.map { $0["label"] } == ["Add photo…"], "it tells no text")
                let number = try await number()
                try portal.press(Self.name, "press.default")
                #expect(
                    try await next()
                        == .activated(identifier: "storm-1", serverID: number, action: "default", activationToken: nil))
            }
        }

        /// Its desktop has fields to type into, and says so.
        @Test func whatWasTypedIsTold() async throws {
            try await withPortal(purposes: ["im.reply-with-text"], categories: ["im.received"]) { presenter, portal, _ in
                var notice = notice()
                notice.actions[1].field = NoticeAction.Field(send: "Send", placeholder: "What is it like?")
                presenter.present(notice)
                let call = try portal.nextCall()
                #expect(call.buttons?.first?["purpose"] == "im.reply-with-text" && call.fields?["category"] == "im.received")
                let number = try await number()
                try portal.press(Self.name, "press.photo", typed: "dark")
                #expect(try await next() == .replied(identifier: "storm-1", serverID: number, text: "dark"))
            }
        }

        /// Replaced in its place under its number, quiet where it was shown before; taken off by its name, and never what replaced it.
        @Test func oneNameIsOneNotification() async throws {
            try await withPortal { presenter, portal, _ in
                presenter.present(notice())
                let first = try await number()
                _ = try portal.nextCall()
                var again = notice()
                again.isQuiet = true
                presenter.present(again)
                let call = try portal.nextCall()
                #expect(call.fields?["sound"] == "silent" && call.fields?["display-hint"] == "tray")
                #expect(try await number() == first)
                presenter.withdraw(identifier: "storm-1", serverID: first + 7, of: known.identity)
                presenter.withdraw(identifier: "storm-1", serverID: first, of: "another")
                presenter.withdraw(identifier: "storm-1", serverID: first, of: known.identity)
                let removal = try portal.nextCall()
                #expect((removal.method, removal.id) == ("remove", Self.name))
                presenter.present(notice())
                #expect(try portal.nextCall().method == "add", "it was removed once")
                #expect(try await number() != first)
            }
        }

        /// A button is told to who showed it last: a later process shows it again.
        @Test func whatAnEarlierProcessShowedIsShownAgain() async throws {
            try await withPortal { presenter, portal, bus in
                presenter.present(notice())
                let first = try await number()
                _ = try portal.nextCall()
                let identity = known.identity
                presenter.stop()
                let later = makePresenter()
                defer { later.stop() }
                later.connect(busAddress: bus.address)
                later.takeOver(identifier: "storm-1", serverID: first, of: identity)
                #expect(try await next() == .unheard(identifier: "storm-1", serverID: first))
                later.present(notice(), replacing: first, of: identity)
                #expect(try await number() == first)
                #expect(try portal.nextCall().method == "add")
            }
        }

        @Test func anotherPortalKnowsNothingOfIt() async throws {
            try await withPortal { presenter, portal, bus in
                presenter.present(notice())
                let first = try await number()
                let before = known.identity
                portal.stop()
                _ = try await events.first { $0 == .serverVanished }
                let next = try PortalServer(on: bus)
                defer { next.stop() }
                _ = try await events.first { $0 == .serverAppeared }
                #expect(known.identity != before)
                presenter.withdraw(identifier: "storm-1", serverID: first, of: before)
                presenter.present(notice(), replacing: first, of: before)
                #expect(try next.nextCall().method == "add", "nothing was removed there")
            }
        }

        /// It has what it was given, and answers when it goes on: nothing is lost, doubled or left behind. One that was taken back meanwhile leaves.
        @Test func aFrozenPortalAnswersLate() async throws {
            try await withPortal { presenter, portal, _ in
                presenter.present(notice())
                let first = try await number()
                _ = try portal.nextCall()
                portal.freeze()
                var other = notice()
                other.identifier = "other"
                presenter.present(other)
                presenter.withdraw(identifier: "storm-1", serverID: first, of: known.identity)
                guard case .failed("other", .unanswered) = try await next() else {
                    throw FixtureFailure("it is said to have failed")
                }
                #expect(known.withdrawn.isEmpty)
                portal.thaw()
                let second = try await number("other")
                #expect(try portal.nextCall().id == "Stormy/other")
                #expect(try portal.nextCall().method == "remove")
                _ = try await events.first { $0 == .serverAppeared }
                #expect(try await known.withdrawals.next() == first && known.withdrawn == [first] && second != first)
            }
        }

        /// Shown by an earlier process while the portal is frozen now: told at once, as the bus alone is asked.
        @Test func aFrozenPortalIsTakenOver() async throws {
            try await withPortal { presenter, portal, bus in
                presenter.present(notice())
                let (first, identity) = (try await number(), known.identity)
                presenter.stop()
                portal.freeze()
                defer { portal.thaw() }
                let later = makePresenter()
                defer { later.stop() }
                later.takeOver(identifier: "storm-1", serverID: first, of: identity)
                later.connect(busAddress: bus.address)
                #expect(try await next() == .unheard(identifier: "storm-1", serverID: first))
            }
        }

        /// No two become one, whatever is in them, and what comes back is what was given.
        @Test(arguments: ["", "a\u{1}b", "a/b%", "app.quit", "æ😀\u{202E}", "a\u{0}b"])
        func namesAreKept(_ identifier: String) {
            let names = PortalName(app: "org.example/app")
            let name = names.name(of: identifier)
            #expect(names.identifier(of: name) == identifier && !name.utf8.contains { $0 < 0x20 })
            #expect(name != names.name(of: "ab") && PortalName(app: "org.example").identifier(of: name) == nil)
            let action = PortalName.action(ofKey: identifier)
            #expect(PortalName.key(ofAction: action) == identifier && !action.hasPrefix("app."))
        }

        /// A backend of that version ends itself when one that was replaced leaves, and knows none for a moment: one after the other, and removed first.
        @Test func version1IsAddedAnew() async throws {
            try await withPortal(version: 1) { presenter, portal, _ in
                var progress = notice()
                progress.actions.removeFirst()
                presenter.present(progress)
                #expect(try portal.nextCall().fields?.keys.contains("default-action") == false, "nothing hears that")
                let first = try await number()
                let begun = ContinuousClock.now
                presenter.present(notice())
                presenter.withdraw(identifier: "storm-1", serverID: first, of: known.identity)
                #expect(try (0..<3).map { _ in try portal.nextCall().method } == ["remove", "add", "remove"])
                #expect(ContinuousClock.now - begun > .seconds(1.9), "each has its turn")
                #expect(try await number() == first)
            }
        }

        /// Another session's bus: the connection to the one that is gone is held by nobody.
        @Test func theNextBusIsUsed() async throws {
            let presenter = makePresenter()
            defer { presenter.stop() }
            for round in 1...3 {
                let bus = try PrivateBus()
                let portal = try PortalServer(on: bus)
                presenter.connect(busAddress: bus.address)
                presenter.present(notice())
                #expect(try portal.nextCall().method == "add", "round \(round)")
                _ = try await events.first { if case .presented = $0 { true } else { false } }
                portal.stop()
                bus.stop()
                _ = try await events.first { $0 == .busLost }
            }
        }

        @Test func withoutAPortalItIsSaid() async throws {
            let bus = try PrivateBus()
            defer { bus.stop() }
            let presenter = makePresenter()
            defer { presenter.stop() }
            presenter.connect(busAddress: bus.address)
            presenter.present(notice())
            guard case .failed("storm-1", .noServer) = try await next() else { throw FixtureFailure("not said") }
        }

        /// The real one of this system, its GTK backend, dunst, and a person's click.
        @Test func theRealOneShowsPressesAndRemoves() async throws {
            let bus = try PrivateBus()
            defer { bus.stop() }
            let desktop = try DunstDesktop(on: bus)
            defer { desktop.stop() }
            let environment = desktop.environment.merging(["XDG_CURRENT_DESKTOP": "GNOME"]) { $1 }
            let services = try ["xdg-desktop-portal-gtk", "xdg-desktop-portal"].map {
                try ChildProcess("/usr/libexec/\($0)", [], environment: environment)
            }
            defer { for service in services { service.stop() } }
            for name in [
                "org.freedesktop.Notifications", "org.freedesktop.impl.portal.desktop.gtk", "org.freedesktop.portal.Desktop",
            ] {
                try ChildProcess.run("gdbus", ["wait", "--session", "--timeout", "60", name], environment: environment)
            }
            let presenter = makePresenter()
            defer { presenter.stop() }
            presenter.connect(busAddress: bus.address)
            presenter.present(notice())
            let first = try await number()
            try desktop.click()
            #expect(
                try await next()
                    == .activated(identifier: "storm-1", serverID: first, action: "default", activationToken: nil))
            var other = notice()
            (other.identifier, other.title) = ("storm-2", "Another storm")
            presenter.present(other)
            let second = try await number("storm-2")
            // dunst keeps a pressed one, which the GTK backend has forgotten by then: nobody can take that off any more.
            #expect(try desktop.waitForDisplayed(2))
            presenter.withdraw(identifier: "storm-2", serverID: second, of: known.identity)
            #expect(try desktop.waitForDisplayed(1))
        }
    }
}
