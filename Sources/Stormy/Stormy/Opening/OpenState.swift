/// The forecasts that are fetched before the weather of the places is opened. Corresponds to Realm's three behaviors.
package enum OpenBehavior: Sendable {
    /// Fetches no forecast and opens the stored copy at once.
    case never
    /// Fetches the forecasts of places that have none.
    case once
    /// Fetches all forecasts, each time.
    case always
}

/// The progress of an opening.
package enum OpenState: Sendable {
    /// The services are requested next.
    case connecting
    /// The store has no place. The opening continues when any process adds one.
    case waitingForUser
    /// The number of places that were requested, and the number of places to request.
    case progress(done: Int, total: Int)
    /// The last state of an opening that succeeded.
    case open(OpenedWeather)
    /// The last state of an opening that failed. The error is ``WeatherUnavailable`` if a service did not respond. The error is
    /// `CancellationError` if a newer opening of the same store has begun, or if the caller was cancelled. Other errors are errors of the
    /// store.
    case error(any Error)
}

/// The weather of the places, as it was judged when it was opened.
package struct OpenedWeather: Sendable {
    /// In the order of the places.
    package var outcomes: [CheckOutcome]
    /// A sentence about region codes of official warnings that are not known; `nil` if there are none to report.
    package var unknownRegions: String?
}

/// Opens the weather, and fails if a service does not respond. Corresponds to Realm's `AsyncOpen`. Responses that did arrive are stored.
///
/// Differs from Realm: a sequence instead of a property wrapper; it ends with ``OpenState/open(_:)`` or ``OpenState/error(_:)``.
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

    /// Begins the opening. An earlier one of the same store in this process is cancelled.
    package func makeAsyncIterator() -> AsyncStream<OpenState>.Iterator { opening.begin().makeAsyncIterator() }
}

/// Opens the weather, and uses the stored copy if a service does not respond. Corresponds to Realm's `AutoOpen`. The result contains the
/// reason and the age of the copy.
///
/// Differs from Realm: a sequence instead of a property wrapper; it ends with ``OpenState/open(_:)`` or ``OpenState/error(_:)``.
package struct AutoOpen: AsyncSequence, Sendable {
    package typealias Element = OpenState

    private let opening: WeatherOpening

    /// Has the parameters of ``AsyncOpen``'s initializer.
    package init(
        _ store: StormyStore, places names: [String]? = nil, _ behavior: OpenBehavior = .always, timeout: Duration? = nil,
        settings: StormySettings = .current
    ) { opening = WeatherOpening(store, names, behavior, timeout, settings, fallsBack: true) }

    /// Begins the opening. An earlier one of the same store in this process is cancelled.
    package func makeAsyncIterator() -> AsyncStream<OpenState>.Iterator { opening.begin().makeAsyncIterator() }
}

extension AsyncSequence where Element == OpenState, Failure == Never {
    /// Waits for the end of an opening.
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
