import BackgroundNotices
import CLibnotify
import Foundation
import Testing

@testable import DesktopServices

extension RealDesktop {
    @Suite struct Losing {
        let events = EventFeed<PresenterEvent>()
        let server = KnownServer()
        let notice = Notice(
            identifier: "a", appName: "Stormy", desktopEntry: "stormy", iconName: "", title: "Storm", body: "Soon")

        func makePresenter() -> DesktopPresenter {
            DesktopPresenter(loop: RealDesktop.loop, appName: "Stormy", handler: server.ear(events))
        }

        @Test func `no bus is started without an address`() async throws {
            let runtime = g_getenv("XDG_RUNTIME_DIR").map { String(cString: $0) }
            g_unsetenv("DBUS_SESSION_BUS_ADDRESS")
            g_unsetenv("XDG_RUNTIME_DIR")
            defer { if let runtime { g_setenv("XDG_RUNTIME_DIR", runtime, 1) } }
            let presenter = makePresenter()
            defer { presenter.stop() }
            presenter.present(notice)
            let event = try await events.next()
            guard case .failed("a", .noSessionBus) = event else {
                Issue.record("unexpected: \(event)")
                return
            }
            #expect(g_getenv("DBUS_SESSION_BUS_ADDRESS") == nil)
        }

        @Test func `an address without a listener is an unreachable bus`() async throws {
            let presenter = makePresenter()
            defer { presenter.stop() }
            let failure = await withCheckedContinuation { continuation in
                presenter.connect(busAddress: "unix:path=/nonexistent/bus") { continuation.resume(returning: $0) }
            }
            guard case .busUnreachable = failure else {
                Issue.record("unexpected: \(String(describing: failure))")
                return
            }
        }

        @Test func `a missing server fails the notification, and its start and end are reported`() async throws {
            let bus = try PrivateBus()
            defer { bus.stop() }
            let presenter = makePresenter()
            defer { presenter.stop() }
            presenter.connect(busAddress: bus.address)
            presenter.present(notice)
            try await expectNoServer()
            let desktop = try DunstDesktop(on: bus)
            defer { desktop.stop() }
            #expect(try await events.next() == .serverAppeared)
            presenter.present(notice)
            guard case .presented = try await events.next() else { throw FixtureFailure("was not presented") }
            desktop.crashServer()
            #expect(try await events.next() == .serverVanished)
            presenter.withdraw(identifier: "a", serverID: 1, of: server.identity)
            presenter.present(notice)
            try await expectNoServer()
        }

        /// The server was frozen. When the server continues, it shows the notification once, and the presenter reports the
        /// server's response.
        @Test func `a server that was frozen shows the notification once, late`() async throws {
            let bus = try PrivateBus()
            defer { bus.stop() }
            let presenter = makePresenter()
            defer { presenter.stop() }
            presenter.connect(busAddress: bus.address)
            let desktop = try DunstDesktop(on: bus)
            defer { desktop.stop() }
            #expect(try await events.next() == .serverAppeared)
            presenter.present(notice)
            guard case .presented("a", let first) = try await events.next() else { throw FixtureFailure("was not presented") }
            var second = notice
            second.identifier = "b"
            desktop.freezeServer()
            presenter.present(second)
            // libnotify waits 25 seconds for the response.
            guard case .failed("b", .unanswered) = try await events.next() else { throw FixtureFailure("was answered") }
            desktop.thawServer()
            guard
                case .presented("b", let number) = try await events.first(where: {
                    if case .presented = $0 { true } else { false }
                })
            else { throw FixtureFailure("was not presented") }
            #expect(number == first + 1)
            presenter.withdraw(identifier: "b", serverID: number, of: server.identity)
            #expect(
                try await events.first { if case .closed = $0 { true } else { false } }
                    == .closed(identifier: "b", serverID: number, .closedByCall))
        }

        @Test func `a server that cannot be started counts as missing`() async throws {
            let bus = try PrivateBus(serviceCommand: "/bin/false")
            defer { bus.stop() }
            let presenter = makePresenter()
            defer { presenter.stop() }
            presenter.connect(busAddress: bus.address)
            presenter.present(notice)
            try await expectNoServer()
        }

        @Test func `the presenter survives its bus and connects to another one`() async throws {
            let presenter = makePresenter()
            defer { presenter.stop() }
            for _ in 0..<3 {
                let bus = try PrivateBus()
                defer { bus.stop() }
                presenter.connect(busAddress: bus.address)
                let desktop = try DunstDesktop(on: bus)
                defer { desktop.stop() }
                #expect(try await events.next() == .serverAppeared)
                presenter.present(notice)
                guard case .presented = try await events.next() else { throw FixtureFailure("was not presented") }
                bus.stop()
                // The server and the presenter lose the bus at the same time, so the exit of the server may be reported first.
                _ = try await events.first { $0 == .busLost }
                presenter.present(notice)
                guard case .failed("a", .busUnreachable) = try await events.next() else {
                    throw FixtureFailure("was not refused")
                }
            }
        }

        /// A command may connect the presenter to a temporary bus. When the temporary bus ends, the presenter uses its first bus
        /// again.
        @Test func `the presenter returns to the bus that it was started with`() async throws {
            let (own, passing) = (try PrivateBus(), try PrivateBus())
            defer { own.stop() }
            let desktop = try DunstDesktop(on: own)
            defer { desktop.stop() }
            let before = g_getenv("DBUS_SESSION_BUS_ADDRESS").map { String(cString: $0) }
            g_setenv("DBUS_SESSION_BUS_ADDRESS", own.address, 1)
            defer { if let before { g_setenv("DBUS_SESSION_BUS_ADDRESS", before, 1) } }
            let presenter = makePresenter()
            defer { presenter.stop() }
            presenter.connect(busAddress: passing.address)
            presenter.present(notice)
            try await expectNoServer()
            passing.stop()
            _ = try await events.first { $0 == .busLost }
            presenter.connect(busAddress: passing.address)
            // The server may have started only just before, so the test waits until the presenter detects the server.
            _ = try await events.first { $0 == .serverAppeared }
            presenter.present(notice)
            _ = try await events.first { if case .presented = $0 { true } else { false } }
        }

        /// If a bus accepts the connection and does not respond, the presenter must try other buses.
        @Test func `a bus that does not respond is skipped for the next one`() async throws {
            let (own, mute) = (try PrivateBus(), try PrivateBus())
            defer { for bus in [own, mute] { bus.stop() } }
            let desktop = try DunstDesktop(on: own)
            defer { desktop.stop() }
            let before = g_getenv("DBUS_SESSION_BUS_ADDRESS").map { String(cString: $0) }
            g_setenv("DBUS_SESSION_BUS_ADDRESS", own.address, 1)
            defer { if let before { g_setenv("DBUS_SESSION_BUS_ADDRESS", before, 1) } }
            mute.freeze()
            let presenter = makePresenter()
            defer { presenter.stop() }
            presenter.connect(busAddress: mute.address)
            presenter.present(notice)
            _ = try await events.first { if case .presented = $0 { true } else { false } }
        }

        func expectNoServer() async throws {
            let event = try await events.next()
            guard case .failed("a", .noServer) = event else {
                Issue.record("unexpected: \(event)")
                return
            }
        }
    }
}
