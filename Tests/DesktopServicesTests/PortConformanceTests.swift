import BackgroundNotices
import BackgroundScheduling
import Foundation
import Testing

@testable import BackgroundTasksTesting
@testable import DesktopServices

/// A desktop that shows a presenter's notifications, as the user sees them.
private protocol PresentingDesktop {
    var presenter: any Presenter { get }
    /// The number of notifications on the screen.
    func count() throws -> Int
    /// Closes the only notification, like a user.
    func dismiss() throws
    /// Clicks the only notification, like a user.
    func click() throws
    /// Ends the notification server, and starts no other server.
    func loseServer()
    /// Completes all pending work.
    func settle()
}

private struct RealPresenting: PresentingDesktop {
    let libnotify: DesktopPresenter
    let dunst: DunstDesktop

    var presenter: any Presenter { libnotify }
    func count() throws -> Int { Int(try dunst.control("count", "displayed")) ?? -1 }
    func dismiss() throws { try dunst.control("close") }
    func click() throws { try dunst.click() }
    func loseServer() { dunst.crashServer() }
    func settle() {}
}

private struct VirtualPresenting: PresentingDesktop {
    let clock: VirtualClock
    let server: VirtualNotificationServer

    var presenter: any Presenter { server }
    func count() -> Int { server.shown.count }
    func dismiss() throws { #expect(server.dismiss(try #require(server.shown.first).identifier)) }
    func click() throws { #expect(server.press(on: try #require(server.shown.first).identifier)) }
    func loseServer() { server.vanish() }
    func settle() { while clock.fire() {} }
}

extension RealDesktop {
    /// Tests of the ports. Every implementation of a port must pass the tests. The agent's results must not depend on the
    /// implementation that the agent uses.
    @Suite struct PortConformance {
        private let server = KnownServer()

        enum Kind: String, CaseIterable {
            case real
            case virtual
        }

        private func withPresenting(
            _ kind: Kind, _ body: (any PresentingDesktop, EventFeed<PresenterEvent>) async throws -> Void
        ) async throws {
            let events = EventFeed<PresenterEvent>()
            switch kind {
            case .real:
                let bus = try PrivateBus()
                defer { bus.stop() }
                let presenter = DesktopPresenter(loop: RealDesktop.loop, appName: "Stormy", handler: server.ear(events))
                defer { presenter.stop() }
                presenter.connect(busAddress: bus.address)
                let dunst = try DunstDesktop(on: bus)
                defer { dunst.stop() }
                #expect(try await events.next() == .serverAppeared)
                try await body(RealPresenting(libnotify: presenter, dunst: dunst), events)
            case .virtual:
                let zone = try #require(TimeZone(identifier: "UTC"))
                let clock = VirtualClock(wall: Date(timeIntervalSince1970: 1_750_000_000), zone: zone)
                let desktop = VirtualNotificationServer(clock: clock)
                desktop.connect(server.ear(events))
                try await body(VirtualPresenting(clock: clock, server: desktop), events)
            }
        }

        private func notice(_ identifier: String, title: String = "Storm") -> Notice {
            Notice(
                identifier: identifier, appName: "Stormy", desktopEntry: "stormy", iconName: "weather-storm", title: title,
                body: "Take the washing in.", actions: [NoticeAction(key: "default", label: "Open")])
        }

        private func show(
            _ notice: Notice, replacing old: UInt32? = nil, _ desktop: any PresentingDesktop, _ events: EventFeed<PresenterEvent>
        ) async throws -> UInt32 {
            desktop.presenter.present(notice, replacing: old, of: server.identity)
            desktop.settle()
            let event = try await events.next()
            guard case .presented(notice.identifier, let id) = event else { throw FixtureFailure("unexpected: \(event)") }
            return id
        }

        @Test(arguments: Kind.allCases) func `a shown notification has a number and is replaced by number`(_ kind: Kind)
            async throws
        {
            try await withPresenting(kind) { desktop, events in
                let first = try await show(notice("a"), desktop, events)
                #expect(first > 0)
                #expect(try await show(notice("a", title: "Worse"), replacing: first, desktop, events) == first)
                #expect(try await show(notice("b"), desktop, events) != first)
                #expect(try desktop.count() == 2)
            }
        }

        @Test(arguments: Kind.allCases)
        func `a withdrawn notification disappears and is reported as closed by call`(_ kind: Kind) async throws {
            try await withPresenting(kind) { desktop, events in
                let id = try await show(notice("a"), desktop, events)
                desktop.presenter.withdraw(identifier: "a", serverID: id, of: server.identity)
                desktop.settle()
                #expect(try await events.next() == .closed(identifier: "a", serverID: id, .closedByCall))
                #expect(try desktop.count() == 0)
                // The presenter ignores a request to remove a notification that does not exist. The next event of the presenter
                // therefore belongs to the next notification.
                desktop.presenter.withdraw(identifier: "a", serverID: id, of: server.identity)
                _ = try await show(notice("b"), desktop, events)
                #expect(server.withdrawn == [id, id], "the server received each request to remove a notification")
            }
        }

        @Test(arguments: Kind.allCases) func `a dismissal by the user is reported once`(_ kind: Kind) async throws {
            try await withPresenting(kind) { desktop, events in
                let id = try await show(notice("a"), desktop, events)
                try desktop.dismiss()
                #expect(try await events.next() == .closed(identifier: "a", serverID: id, .dismissed))
                _ = try await show(notice("b"), desktop, events)
            }
        }

        @Test(arguments: Kind.allCases) func `a click is an action`(_ kind: Kind) async throws {
            try await withPresenting(kind) { desktop, events in
                let id = try await show(notice("a"), desktop, events)
                try desktop.click()
                let pressed = try await events.next()
                guard case .activated("a", id, "default", _) = pressed else { throw FixtureFailure("unexpected: \(pressed)") }
                // The server decides whether a pressed notification leaves the screen, so the test expects no further event.
            }
        }

        @Test(arguments: Kind.allCases) func `a notification without a server fails`(_ kind: Kind) async throws {
            try await withPresenting(kind) { desktop, events in
                _ = try await show(notice("a"), desktop, events)
                desktop.loseServer()
                #expect(try await events.next() == .serverVanished)
                desktop.presenter.present(notice("b"))
                desktop.settle()
                let event = try await events.next()
                guard case .failed("b", .noServer) = event else { throw FixtureFailure("unexpected: \(event)") }
            }
        }

        // MARK: Conditions

        /// - Parameter change: A function that unplugs the machine, or plugs it in.
        private func holds(
            _ source: any ConditionsSource, _ events: EventFeed<DesktopConditions>, _ change: (Bool) throws -> Void
        ) async throws {
            #expect(try await events.next() == source.current, "the first event has the current conditions")
            try change(false)
            let unplugged = try await events.next()
            #expect(!unplugged.isOnExternalPower)
            #expect(source.current == unplugged)
            // An unchanged value is not reported, so the next report belongs to the real change.
            try change(false)
            try change(true)
            let plugged = try await events.next()
            #expect(plugged.isOnExternalPower)
            #expect(source.current == plugged)
        }

        @Test func `conditions of the desktop are reported at the start and when they change`() async throws {
            let folder = try TemporaryFolder.make()
            defer { try? FileManager.default.removeItem(at: folder) }
            let supplies = folder.appendingPathComponent("supplies")
            try KernelSupplies.write(
                ["AC": ["type": "Mains", "online": "1"], "BAT0": ["type": "Battery", "status": "Full"]], to: supplies)
            let events = EventFeed<DesktopConditions>()
            setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent/bus", 1)
            let monitor = DesktopConditionsMonitor(
                loop: RealDesktop.loop, powerSupplies: supplies.path,
                localTime: folder.appendingPathComponent("localtime").path, handler: events.send, onSignal: { _ in })
            defer { monitor.stop() }
            try await holds(monitor, events) { isPlugged in
                try KernelSupplies.write(["AC": ["type": "Mains", "online": isPlugged ? "1" : "0"]], to: supplies)
                monitor.refresh()
            }
        }

        @Test func `conditions of a simulated host are reported when they change`() async throws {
            let events = EventFeed<DesktopConditions>()
            let scripted = ScriptedConditions(
                DesktopConditions(isNetworkAvailable: true, isNetworkMetered: false, isOnExternalPower: true))
            events.send(scripted.current)
            try await holds(scripted, events) { isPlugged in
                if scripted.set({ $0.isOnExternalPower = isPlugged }) { events.send(scripted.current) }
            }
        }
    }
}
