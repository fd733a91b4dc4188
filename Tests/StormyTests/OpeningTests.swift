import BackgroundTasksTesting
import Foundation
import ServerScripts
import StormyWeather
import Synchronization
import Testing

@testable import Stormy

/// The states of a call of `asyncOpen` or `autoOpen` on a virtual network, in order.
private final class Seen: Sendable {
    private let states = Mutex<[OpenState]>([])

    func add(_ state: OpenState) { states.withLock { $0.append(state) } }

    var words: [String] {
        states.withLock { $0 }.map { state in
            switch state {
            case .connecting: "connecting"
            case .waitingForUser: "waitingForUser"
            case .progress(let done, let total): "\(done) of \(total)"
            case .open: "open"
            case .error(let error): error is CancellationError ? "cancelled" : "error"
            }
        }
    }

    var isOver: Bool { words.last.map { ["open", "cancelled", "error"].contains($0) } ?? false }

    var weather: OpenedWeather? {
        if case .open(let weather)? = states.withLock({ $0.last }) { weather } else { nil }
    }

    var error: String? {
        if case .error(let error)? = states.withLock({ $0.last }) { "\(error)" } else { nil }
    }
}

@Suite(.timeLimit(.minutes(30))) struct OpeningTests {
    private static let service = "https://weather.test"

    private struct World: Sendable {
        let driver: TestDriver
        let store: StormyStore
        let settings: StormySettings

        var server: VirtualServer { driver.network.server(OpeningTests.service) }

        /// - Parameter broken: If the URL contains this text, the server responds with 503.
        func serve(_ code: Int, but broken: String? = nil) {
            let start = Int(driver.clock.date.timeIntervalSince1970 / 3600) * 3600
            let hours = (0..<48).map { start + $0 * 3600 }
            let numbers = { (value: Double) in hours.map { _ in "\(value)" }.joined(separator: ",") }
            let answer = ResponseScript.json(
                """
                {"latitude":1,"longitude":1,"timezone":"GMT","hourly_units":{"time":"unixtime","wind_gusts_10m":"km/h",
                "precipitation":"mm"},"hourly":{"time":[\(hours.map(String.init).joined(separator: ","))],
                "weather_code":[\(numbers(Double(code)))],"precipitation":[\(numbers(3))],"cape":[\(numbers(900))],
                "wind_gusts_10m":[\(numbers(20))]}}
                """)
            server.handle("GET", "/v1/forecast*") { request in
                broken.map { request.target.contains($0) } ?? false ? .status(503) : answer
            }
        }

        func asyncOpen(_ behavior: OpenBehavior = .always, timeout: Duration? = nil) -> AsyncOpen {
            AsyncOpen(store, behavior, timeout: timeout, settings: settings)
        }

        func autoOpen(_ behavior: OpenBehavior = .always, timeout: Duration? = nil) -> AutoOpen {
            AutoOpen(store, behavior, timeout: timeout, settings: settings)
        }

        /// Collects the states of a call of `asyncOpen` or `autoOpen` from now on.
        func listen(_ opening: some AsyncSequence<OpenState, Never> & Sendable) -> Seen {
            let seen = Seen()
            Task {
                for await state in opening { seen.add(state) }
            }
            return seen
        }

        /// Lets virtual time pass until the call of `asyncOpen` or `autoOpen` has ended.
        func end(of opening: some AsyncSequence<OpenState, Never> & Sendable) async throws -> Seen {
            let seen = listen(opening)
            while !seen.isOver { try await driver.advance(by: .milliseconds(100)) }
            return seen
        }

        func add(_ name: String) throws { _ = try store.addPlace(name, Coordinates(latitude: 1, longitude: 1)) }
    }

    private func play(_ body: @Sendable (World) async throws -> Void) async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("stormy-" + UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: folder) }
        var settings = StormySettings(dataFolder: folder)
        settings.weatherBaseURL = Self.service
        let store = try StormyStore(folder: folder)
        let known = settings
        try await TestDriver.run(permitting: []) { driver in
            try await body(World(driver: driver, store: store, settings: known))
        }
    }

    @Test func `with the policy always, each opening requests all forecasts`() async throws {
        try await play { world in
            for name in ["A", "B", "C"] { try world.add(name) }
            world.serve(95)
            let seen = try await world.end(of: world.asyncOpen())
            #expect(seen.words == ["connecting", "0 of 3", "1 of 3", "2 of 3", "3 of 3", "open"])
            #expect(seen.weather?.outcomes.map(\.place.name) == ["A", "B", "C"])
            #expect(seen.weather?.outcomes.allSatisfy { $0.assessment?.isStormy == true && !$0.isStale } == true)
            _ = try await world.end(of: world.asyncOpen())
            #expect(world.server.requests().count == 6)
        }
    }

    @Test func `with the policy once, an opening requests only missing forecasts`() async throws {
        try await play { world in
            try world.add("A")
            world.serve(0)
            _ = try await world.end(of: world.asyncOpen(.once))
            try world.add("B")
            let seen = try await world.end(of: world.asyncOpen(.once))
            #expect(seen.words == ["connecting", "0 of 1", "1 of 1", "open"])
            #expect(seen.weather?.outcomes.compactMap(\.fetchedAt).count == 2)
            #expect(try await world.end(of: world.asyncOpen(.once)).words == ["connecting", "open"])
            #expect(world.server.requests().count == 2)
        }
    }

    @Test func `with the policy never, an opening sends no request and reports the missing forecast`() async throws {
        try await play { world in
            try world.add("A")
            let seen = try await world.end(of: world.asyncOpen(.never))
            #expect(seen.words == ["connecting", "open"])
            #expect(seen.weather?.outcomes.map(\.trouble) == ["no forecast is stored yet"])
            #expect(world.server.requests().isEmpty)
        }
    }

    /// `autoOpen` also reports the network error.
    @Test func `without a network, asyncOpen fails and autoOpen opens the stored forecast`() async throws {
        try await play { world in
            try world.add("A")
            world.serve(95)
            _ = try await world.end(of: world.asyncOpen())
            world.driver.network.takeAway(Self.service)
            let failed = try await world.end(of: world.asyncOpen())
            #expect(failed.words == ["connecting", "0 of 1", "1 of 1", "error"])
            #expect(failed.error?.hasPrefix("the weather service at weather.test: ") == true, "\(failed.error ?? "")")
            let opened = try #require(try await world.end(of: world.autoOpen()).weather?.outcomes.first)
            #expect(opened.assessment?.isStormy == true && opened.isStale && opened.fetchedAt != nil)
            #expect(opened.trouble == failed.error)
            #expect(try world.store.checks().map(\.trouble) == [failed.error])
            world.driver.network.comeBack(Self.service)
            #expect(try await world.end(of: world.asyncOpen()).weather?.outcomes.first?.isStale == false)
            #expect(try world.store.checks().map(\.trouble) == [nil])
        }
    }

    @Test func `forecasts of other places are stored if one place fails`() async throws {
        try await play { world in
            try world.add("A")
            world.serve(0, but: "latitude=2")
            _ = try world.store.addPlace("B", Coordinates(latitude: 2, longitude: 1))
            #expect(try await world.end(of: world.asyncOpen()).words.last == "error")
            let weather = try #require(try await world.end(of: world.autoOpen(.never)).weather)
            #expect(weather.outcomes.map { $0.fetchedAt != nil } == [true, false])
            #expect(try world.store.checks().map { $0.trouble == nil } == [true, false])
        }
    }

    @Test func `a slow service is reported after the given timeout`() async throws {
        try await play { world in
            try world.add("A")
            world.serve(0)
            // With this latency, no response arrives before the time limit.
            world.driver.network.latency = 1_000_000
            let failed = try await world.end(of: world.asyncOpen(timeout: .milliseconds(200)))
            #expect(failed.error == "the weather service did not respond within 200 ms")
            let opened = try await world.end(of: world.autoOpen(timeout: .milliseconds(200)))
            #expect(opened.weather?.outcomes.first?.trouble == failed.error)
            #expect(try world.store.checks().map(\.trouble) == [failed.error])
        }
    }

    /// A service may respond with a forecast for years. Stormy does not store the hours that it does not need.
    @Test(arguments: [-3_000, 0, 3_000]) func `a trimmed forecast leads to the same assessment`(_ shift: Int) throws {
        let now = Date(timeIntervalSince1970: 1_800_000_000)
        let hours = (-2_000..<2_000).map {
            ForecastHour(start: now + Double(($0 + shift) * 3600), weatherCode: 95, precipitationMM: 3, cape: 900)
        }
        let forecast = Forecast(hours: hours)
        let kept = forecast.trimmed(around: now)
        #expect(kept.hours.count == (shift == 0 ? 433 : 24) && kept.hours == kept.hours.sorted { $0.start < $1.start })
        #expect(StormRule().assess(kept, now: now) == StormRule().assess(forecast, now: now))
    }

    /// The call waits because the store contains no place.
    @Test func `the opening continues when another process adds the first place`() async throws {
        try await play { world in
            world.serve(0)
            let seen = world.listen(world.asyncOpen())
            while seen.words.last != "waitingForUser" { await Task.yield() }
            // A separate connection simulates another process. GRDB does not observe changes that a separate connection makes.
            try StormyStore(folder: world.settings.dataFolder).addPlaceForTest("A")
            while !seen.isOver { try await world.driver.advance(by: .milliseconds(100)) }
            #expect(seen.words == ["connecting", "waitingForUser", "connecting", "0 of 1", "1 of 1", "open"])
        }
    }

    @Test func `a newer opening cancels the older one`() async throws {
        try await play { world in
            try world.add("A")
            world.serve(0)
            let older = world.listen(world.asyncOpen())
            while older.words.last != "0 of 1" { await Task.yield() }
            let newer = try await world.end(of: world.asyncOpen())
            while !older.isOver { await Task.yield() }
            #expect(older.words.last == "cancelled")
            #expect(newer.words.last == "open")
            // The cancelled call of `asyncOpen` stores no error for the check.
            #expect(try world.store.checks().map(\.trouble) == [nil])
        }
    }

    @Test func `each change from another connection is delivered once`() async throws {
        try await play { world in
            var looks = world.store.contents().makeAsyncIterator()
            #expect(try await looks.next()?.places == [])
            let other = try StormyStore(folder: world.settings.dataFolder)
            for name in ["A", "B"] {
                try other.addPlaceForTest(name)
                #expect(try await looks.next()?.places.last?.name == name)
            }
            try other.renamePlace("B", to: "C")
            #expect(try await looks.next()?.places.map(\.name) == ["A", "C"])
        }
    }

    /// Another connection commits a change before, while or after the app begins to observe the store.
    @Test func `changes during the start of the observation are delivered`() async throws {
        try await play { world in
            let other = try StormyStore(folder: world.settings.dataFolder)
            for round in 1...100 {
                async let added: Void = other.addPlaceForTest("A\(round)")
                for try await look in world.store.contents() where look.places.count == round { break }
                try await added
            }
        }
    }
}

extension StormyStore {
    fileprivate func addPlaceForTest(_ name: String) throws {
        _ = try addPlace(name, Coordinates(latitude: 1, longitude: 1))
    }
}
