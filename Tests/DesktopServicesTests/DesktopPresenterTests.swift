import BackgroundNotices
import Foundation
import Testing

@testable import DesktopServices

/// One main loop for all tests, because GIO's network monitor always uses its first loop. The tests run one at a time, because
/// libnotify and GLib share one connection per process.
@Suite(.serialized, .timeLimit(.minutes(30)))
enum RealDesktop {
    static let loop = GLibLoop(name: "test-glib")
}

private func notice(
    _ identifier: String, title: String = "Storm", body: String = "Take the washing in.",
    urgency: NoticeUrgency = .normal, actions: [NoticeAction] = []
) -> Notice {
    Notice(
        identifier: identifier, appName: "Stormy", desktopEntry: "stormy", iconName: "weather-storm", title: title,
        body: body, category: "weather.warning", urgency: urgency, actions: actions)
}

extension RealDesktop {
    @Suite struct Presenting {
        let events = EventFeed<PresenterEvent>()
        let server = KnownServer()

        /// Starts dunst on a bus, and runs `body` with a presenter on this bus.
        func withDesktop(_ body: (DesktopPresenter, DunstDesktop) async throws -> Void) async throws {
            let bus = try PrivateBus()
            defer { bus.stop() }
            let presenter = makePresenter()
            defer { presenter.stop() }
            presenter.connect(busAddress: bus.address)
            let desktop = try DunstDesktop(on: bus)
            defer { desktop.stop() }
            #expect(try await events.next() == .serverAppeared)
            try await body(presenter, desktop)
        }

        func makePresenter() -> DesktopPresenter {
            DesktopPresenter(loop: RealDesktop.loop, appName: "Stormy", handler: server.ear(events))
        }

        func presentedID(_ identifier: String) async throws -> UInt32 {
            let event = try await events.next()
            guard case .presented(identifier, let id) = event else { throw FixtureFailure("unexpected: \(event)") }
            return id
        }

        @Test func `a second notification with the same identifier replaces the first`() async throws {
            try await withDesktop { presenter, desktop in
                presenter.present(notice("a"))
                let first = try await presentedID("a")
                #expect(first > 0)
                presenter.present(notice("a", title: "Worse"))
                #expect(try await presentedID("a") == first)
                presenter.present(notice("b"))
                #expect(try await presentedID("b") != first)
                #expect(try desktop.control("count", "displayed") == "2")
            }
        }

        @Test func `a dismissal by the user is reported`() async throws {
            try await withDesktop { presenter, desktop in
                presenter.present(notice("a"))
                let id = try await presentedID("a")
                try desktop.control("close")
                #expect(try await events.next() == .closed(identifier: "a", serverID: id, .dismissed))
                // After a notification object was closed, it reports no further events. The next notification therefore needs a
                // new object.
                presenter.present(notice("a"))
                let second = try await presentedID("a")
                try desktop.control("close")
                #expect(try await events.next() == .closed(identifier: "a", serverID: second, .dismissed))
            }
        }

        @Test func `the expiry of a notification is reported`() async throws {
            try await withDesktop { presenter, _ in
                presenter.present(notice("a", urgency: .low))
                let id = try await presentedID("a")
                #expect(try await events.next() == .closed(identifier: "a", serverID: id, .expired))
            }
        }

        @Test func `a withdrawal is reported as closed by call`() async throws {
            try await withDesktop { presenter, desktop in
                presenter.present(notice("a"))
                let id = try await presentedID("a")
                presenter.withdraw(identifier: "a", serverID: id, of: server.identity)
                #expect(try await events.next() == .closed(identifier: "a", serverID: id, .closedByCall))
                #expect(try desktop.control("count", "displayed") == "0")
            }
        }

        @Test(arguments: ["default", "details"]) func `a click activates the action`(key: String) async throws {
            try await withDesktop { presenter, desktop in
                presenter.present(notice("a", actions: [NoticeAction(key: key, label: "Show")]))
                let id = try await presentedID("a")
                try desktop.click()
                let event = try await events.next()
                guard case .activated("a", id, key, _) = event else {
                    Issue.record("unexpected: \(event)")
                    return
                }
            }
        }

        @Test func `the body's markup is shown as written and the title is untouched`() async throws {
            try await withDesktop { presenter, desktop in
                presenter.present(notice("a", title: "Wind & <rain>", body: "<b>5 < 6</b> & \u{0}more"))
                _ = try await presentedID("a")
                try desktop.control("close")
                _ = try await events.next()
                let history = try desktop.control("history")
                #expect(history.contains("&lt;b&gt;5 &lt; 6&lt;/b&gt; &amp; more"))
                #expect(history.contains("Wind & <rain>"))
            }
        }

        @Test func `a notification with an empty title is shown`() async throws {
            try await withDesktop { presenter, desktop in
                presenter.present(notice("a", title: "", body: ""))
                _ = try await presentedID("a")
            }
        }

        @Test func `a later process replaces and withdraws the notification of an earlier process`() async throws {
            try await withDesktop { earlier, desktop in
                earlier.present(notice("a"))
                let id = try await presentedID("a")
                earlier.stop()
                #expect(try desktop.control("count", "displayed") == "1")

                let address = try #require(ProcessInfo.processInfo.environment["DBUS_SESSION_BUS_ADDRESS"])
                let later = makePresenter()
                defer { later.stop() }
                later.connect(busAddress: address)
                #expect(try await events.next() == .serverAppeared)
                later.present(notice("a", title: "Again"), replacing: id, of: server.identity)
                #expect(try await presentedID("a") == id)
                later.stop()

                let last = makePresenter()
                defer { last.stop() }
                last.withdraw(identifier: "a", serverID: id, of: server.identity)
                let described = await describe(last)
                #expect(described?.name == "dunst")
                #expect(try desktop.control("count", "displayed") == "0")
            }
        }

        /// At a logout, the server exits while no presenter is connected. The next notification server starts again with
        /// notification number one.
        @Test func `an id of an earlier server replaces and withdraws nothing`() async throws {
            try await withDesktop { presenter, desktop in
                presenter.present(notice("a"))
                let id = try await presentedID("a")
                for giver in ["another server", nil] {
                    let later = makePresenter()
                    later.withdraw(identifier: "b", serverID: id, of: giver)
                    later.present(notice("b", title: "Another"), replacing: id, of: giver)
                    let event = try await events.first { if case .presented = $0 { true } else { false } }
                    guard case .presented("b", let other) = event else { throw FixtureFailure("unexpected: \(event)") }
                    #expect(other != id)
                    later.stop()
                }
                #expect(try desktop.control("count", "displayed") == "2")
            }
        }

        @Test func `a notification whose id was lost in a crash is replaced by its tag`() async throws {
            try await withDesktop { earlier, desktop in
                earlier.present(notice("a"))
                _ = try await presentedID("a")
                earlier.stop()
                let later = makePresenter()
                defer { later.stop() }
                later.present(notice("a"))
                _ = try await events.first { if case .presented = $0 { true } else { false } }
                #expect(try desktop.control("count", "displayed") == "1")
            }
        }

        @Test func `the description of the server has its name, version and capabilities`() async throws {
            try await withDesktop { presenter, _ in
                let server = try #require(await describe(presenter))
                #expect(server.name == "dunst")
                #expect(server.vendor == "knopwob")
                #expect(server.specificationVersion == "1.2")
                #expect(server.capabilities.isSuperset(of: ["actions", "body", "body-markup", "x-dunst-stack-tag"]))
            }
        }

        func describe(_ presenter: DesktopPresenter) async -> PresenterServer? {
            await withCheckedContinuation { continuation in
                presenter.describeServer { continuation.resume(returning: try? $0.get()) }
            }
        }
    }
}
