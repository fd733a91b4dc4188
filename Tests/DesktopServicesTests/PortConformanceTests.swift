import BackgroundNotices
import BackgroundScheduling
import Foundation
import Testing

@testable import BackgroundTasksTesting
@testable import DesktopServices

/// A desktop whose notifications a presenter shows, as a person sees it.
private protocol PresentingDesktop {
    var presenter: any Presenter { get }
    /// Notifications on the screen.
    func count() throws -> Int
    /// The person closes the only one.
    func dismiss() throws
    /// The person clicks on the only one.
    func click() throws
    /// The notification server goes, and nobody takes its place.
    func loseServer()
    /// What was asked for is done.
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
    /// One suite per port, over every implementation: what the agent hears must not depend on which of them it is joined with.
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

        @Test(arguments: Kind.allCases) func `a showing is answered with a number, and replaces its own`(_ kind: Kind)
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

        @Test(arguments: Kind.allCases) func `taken back it goes, and says by whom`(_ kind: Kind) async throws {
            try await withPresenting(kind) { desktop, events in
                let id = try await show(notice("a"), desktop, events)
                desktop.presenter.withdraw(identifier: "a", serverID: id, of: server.identity)
                desktop.settle()
                #expect(try await events.next() == .closed(identifier: "a", serverID: id, .closedByCall))
                #expect(try desktop.count() == 0)
                // What is not there is ignored: the next event is that of the next showing.
                desktop.presenter.withdraw(identifier: "a", serverID: id, of: server.identity)
                _ = try await show(notice("b"), desktop, events)
                #expect(server.withdrawn == [id, id], "whoever asked knows that it was asked")
            }
        }

        @Test(arguments: Kind.allCases) func `a person's dismissal is told once`(_ kind: Kind) async throws {
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
                // Whether it leaves the screen then is the server's choice: an agent hears of that, or not.
            }
        }

        @Test(arguments: Kind.allCases) func `without a server it says so`(_ kind: Kind) async throws {
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

        /// - Parameter change: unplugs the machine, or plugs it in.
        private func holds(
            _ source: any ConditionsSource, _ events: EventFeed<DesktopConditions>, _ change: (Bool) throws -> Void
        ) async throws {
            #expect(try await events.next() == source.current, "told at the start")
            try change(false)
            let unplugged = try await events.next()
            #expect(!unplugged.isOnExternalPower)
            #expect(source.current == unplugged)
            // Nothing different: nothing is told, and the next one is about what is.
            try change(false)
            try change(true)
            let plugged = try await events.next()
            #expect(plugged.isOnExternalPower)
            #expect(source.current == plugged)
        }

        @Test func `conditions of the desktop are told at the start and when they change`() async throws {
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

        @Test func `conditions of a simulated host are told likewise`() async throws {
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
