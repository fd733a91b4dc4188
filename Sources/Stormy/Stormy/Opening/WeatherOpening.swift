import BackgroundRuntime
import BackgroundTasks
import Foundation
import StormyWeather
import Synchronization

/// Opens the weather of the places. Before this, the type requests the forecasts that ``OpenBehavior`` requires, for a few places
/// at a time, and reports the progress.
struct WeatherOpening: Sendable {
    /// The number of places that are requested at the same time.
    private static let lanes = 6
    /// The maximum time for all warning feeds. Documents that were not requested within this time are requested by the next
    /// check.
    private static let feedTime: Duration = .seconds(15)
    /// The maximum time for the official services of all places, and the maximum time for MeteoAlarm, which replaces services
    /// that failed.
    private static let (ownTime, meteoAlarmTime): (Duration, Duration) = (.seconds(20), .seconds(10))

    let check: WeatherCheck
    let names: [String]?
    let behavior: OpenBehavior
    let timeout: Duration?
    let fallsBack: Bool

    init(
        _ store: StormyStore, _ names: [String]?, _ behavior: OpenBehavior, _ timeout: Duration?, _ settings: StormySettings,
        fallsBack: Bool
    ) {
        check = WeatherCheck(store: store, settings: settings)
        (self.names, self.behavior, self.timeout, self.fallsBack) = (names, behavior, timeout, fallsBack)
    }

    private var store: StormyStore { check.store }

    func begin() -> AsyncStream<OpenState> {
        AsyncStream { continuation in
            let task = Task(executorPreference: AppRuntime.ofWork.executor) {
                await run { continuation.yield($0) }
                continuation.finish()
            }
            OpeningsUnderWay.begin(task, of: store.queue.path)
            continuation.onTermination = { _ in task.cancel() }
        }
    }

    private func run(_ tell: @escaping @Sendable (OpenState) -> Void) async {
        do {
            while true {
                tell(.connecting)
                let places = try places()
                if !places.isEmpty || names != nil { return tell(.open(try await open(places, tell))) }
                tell(.waitingForUser)
                for try await look in store.contents() where !look.places.isEmpty { break }
                try Task.checkCancellation()
            }
        } catch {
            tell(.error(error))
        }
    }

    private func places() throws -> [Place] { try names.map { try $0.map(store.place(named:)) } ?? store.places() }

    private func open(_ places: [Place], _ tell: @escaping @Sendable (OpenState) -> Void) async throws -> OpenedWeather {
        let asked =
            switch behavior {
            case .never: [Place]()
            case .once: try places.filter { try store.lastForecast(of: $0) == nil }
            case .always: places
            }
        if asked.isEmpty { return OpenedWeather(outcomes: try places.map { try check.stored($0, trouble: nil) }) }
        tell(.progress(done: 0, total: asked.count))
        let runtime = AppRuntime.ofWork
        let began = runtime.elapsed
        let feeds = FeedWarnings(store: store, settings: check.settings)
        async let own: Void = requestWarnings(at: asked, within: min(Self.ownTime, timeout ?? Self.ownTime))
        try await feeds.refresh(within: min(Self.feedTime, timeout ?? Self.feedTime))
        try await own
        try Task.checkCancellation()
        let left = timeout.map { max(.zero, $0 - (runtime.elapsed - began)) } ?? Self.meteoAlarmTime
        try await feeds.refreshSubstitutes(for: asked, within: min(Self.meteoAlarmTime, left))
        let results = try await request(asked, within: timeout.map { max(.zero, $0 - (runtime.elapsed - began)) }, tell)
        // The caller may have been cancelled, or a newer task may have begun to open the weather.
        try Task.checkCancellation()
        var failure: WeatherUnavailable?
        let outcomes = try places.map { place in
            guard let id = place.id, asked.contains(place) else { return try check.stored(place, trouble: nil) }
            switch results[id] {
            case .success(let outcome): return outcome
            case .failure(let error): return try fallBack(place, error.description, &failure)
            case nil: return try fallBack(place, noAnswer, &failure)
            }
        }
        if let failure { throw failure }
        let unknown = try feeds.unknownRegions()
        return OpenedWeather(outcomes: outcomes, unknownRegions: unknown)
    }

    /// Requests the official services of places, for a few places at a time.
    private func requestWarnings(at places: [Place], within limit: Duration) async throws {
        let trouble = FirstError()
        try await within(limit) {
            await Lanes(count: Self.lanes, patience: WeatherCheck.longestWait).forEach(of: places) { place in
                do { try await check.requestWarnings(at: place) } catch { trouble.record(error) }
            }
        }
        try trouble.check()
    }

    private var noAnswer: String {
        let seconds = timeout.map { " within " + $0.formatted(.units(allowed: [.seconds, .milliseconds])) } ?? ""
        return "the weather service did not respond\(seconds)"
    }

    private func fallBack(_ place: Place, _ reason: String, _ failure: inout WeatherUnavailable?) throws -> CheckOutcome {
        try store.storeCheckTrouble(reason, of: place, now: BGTaskScheduler.now)
        if !fallsBack { failure = failure ?? WeatherUnavailable(description: reason) }
        return try check.stored(place, trouble: reason)
    }

    /// - Returns: The results, with the ids of the places as keys. A place has no result if no response arrived in time.
    /// - Throws: an error of the store.
    private func request(
        _ places: [Place], within limit: Duration?, _ tell: @escaping @Sendable (OpenState) -> Void
    ) async throws -> [Int64: Result<CheckOutcome, WeatherUnavailable>] {
        let (results, trouble) = (Results(), FirstError())
        try await within(limit) {
            await Lanes(count: Self.lanes, patience: WeatherCheck.longestWait).forEach(of: places) { place in
                let result: Result<CheckOutcome, WeatherUnavailable>
                do {
                    result = .success(try await check.refresh(place))
                } catch let error as WeatherUnavailable {
                    result = .failure(error)
                } catch {
                    return trouble.record(error)
                }
                // A cancelled request means that the service did not respond in time. No result is stored for the place.
                if Task.isCancelled { return }
                tell(.progress(done: results.add(result, of: place), total: places.count))
            }
        }
        try trouble.check()
        return results.all
    }

    private final class Results: Sendable {
        private let results = Mutex<[Int64: Result<CheckOutcome, WeatherUnavailable>]>([:])

        /// - Returns: the number of results.
        func add(_ result: Result<CheckOutcome, WeatherUnavailable>, of place: Place) -> Int {
            results.withLock { results in
                results[place.id ?? 0] = result
                return results.count
            }
        }

        var all: [Int64: Result<CheckOutcome, WeatherUnavailable>] { results.withLock { $0 } }
    }
}

/// For each store, the task that is opening the weather.
private enum OpeningsUnderWay {
    private static let tasks = Mutex<[String: Task<Void, Never>]>([:])

    /// Stores the task that opens the weather, and cancels the previous task of the store.
    static func begin(_ task: Task<Void, Never>, of store: String) {
        tasks.withLock { $0.updateValue(task, forKey: store) }?.cancel()
    }
}
