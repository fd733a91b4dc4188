/// Determines which forecasts are downloaded before the weather of the places is opened. The cases have the names of Realm's
/// three behaviors.
package enum OpenBehavior: Sendable {
    /// Downloads no forecast, and opens the stored forecasts immediately.
    case never
    /// Downloads forecasts only for places without a stored forecast.
    case once
    /// Always downloads all forecasts.
    case always
}

/// The progress while the weather of the places is opened.
package enum OpenState: Sendable {
    /// The next step is to request the services.
    case connecting
    /// The store has no place. The opening continues when a process adds a place.
    case waitingForUser
    /// The number of places whose requests are complete, and the total number of places to request.
    case progress(done: Int, total: Int)
    /// The last state of an opening that succeeded.
    case open(OpenedWeather)
    /// The last state of an opening that failed. The error is ``WeatherUnavailable`` if a service did not respond. The error is
    /// `CancellationError` if a newer opening of the same store has begun, or if the caller was cancelled. Other errors are
    /// errors of the store.
    case error(any Error)
}

/// The weather of the places when the weather was opened.
package struct OpenedWeather: Sendable {
    /// The results of the checks, in the order of the places.
    package var outcomes: [CheckOutcome]
    /// A sentence about unknown region codes in official warnings. `nil` if no such codes have to be reported.
    package var unknownRegions: String?
}

/// Opens the weather, and fails if a service does not respond. The responses of other services are stored even after such a
/// failure. The type is like Realm's `AsyncOpen`.
///
/// In contrast to Realm's type, `AsyncOpen` is a sequence of states and not a property wrapper. The last state is
/// ``OpenState/open(_:)`` or ``OpenState/error(_:)``.
package struct AsyncOpen: AsyncSequence, Sendable {
    package typealias Element = OpenState

    private let opening: WeatherOpening

    /// - Parameters:
    ///   - names: the places to open. `nil` for all places.
    ///   - timeout: the maximum time for the services. `nil` for no limit.
    package init(
        _ store: StormyStore, places names: [String]? = nil, _ behavior: OpenBehavior = .always, timeout: Duration? = nil,
        settings: StormySettings = .current
    ) { opening = WeatherOpening(store, names, behavior, timeout, settings, fallsBack: false) }

    /// Begins the opening. If this process is already opening the weather of the same store, the earlier task is cancelled.
    package func makeAsyncIterator() -> AsyncStream<OpenState>.Iterator { opening.begin().makeAsyncIterator() }
}

/// Opens the weather, and uses the stored forecast if a service does not respond. The result contains the reason and the age of
/// the stored forecast. The type is like Realm's `AutoOpen`.
///
/// In contrast to Realm's type, `AutoOpen` is a sequence of states and not a property wrapper. The last state is
/// ``OpenState/open(_:)`` or ``OpenState/error(_:)``.
package struct AutoOpen: AsyncSequence, Sendable {
    package typealias Element = OpenState

    private let opening: WeatherOpening

    /// Creates the sequence. The parameters are equal to the parameters of ``AsyncOpen``'s initializer.
    package init(
        _ store: StormyStore, places names: [String]? = nil, _ behavior: OpenBehavior = .always, timeout: Duration? = nil,
        settings: StormySettings = .current
    ) { opening = WeatherOpening(store, names, behavior, timeout, settings, fallsBack: true) }

    /// Begins the opening. If this process is already opening the weather of the same store, the earlier task is cancelled.
    package func makeAsyncIterator() -> AsyncStream<OpenState>.Iterator { opening.begin().makeAsyncIterator() }
}

extension AsyncSequence where Element == OpenState, Failure == Never {
    /// Waits until the weather is opened, and returns the weather.
    ///
    /// - Throws: the error of ``OpenState/error(_:)``.
    package func opened() async throws -> OpenedWeather {
        for await state in self {
            switch state {
            case .open(let weather): return weather
            case .error(let error): throw error
            case .connecting, .waitingForUser, .progress: continue
            }
        }
        throw CancellationError()
    }
}
