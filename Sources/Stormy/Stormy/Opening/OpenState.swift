/// What is fetched before the weather of the places is opened to be looked at: Realm's three behaviours.
package enum OpenBehavior: Sendable {
    /// Nothing: the copy on this device is opened at once.
    case never
    /// What is not there yet: forecasts of places that have none.
    case once
    /// Everything, each time.
    case always
}

/// How far an opening is.
package enum OpenState: Sendable {
    /// Services are about to be asked.
    case connecting
    /// There is no place yet. The opening goes on as soon as one is added, by whichever process.
    case waitingForUser
    /// So many places of all that are opened have been asked for.
    case progress(done: Int, total: Int)
    /// The last state of an opening that succeeded.
    case open(OpenedWeather)
    /// The last state of one that did not. ``WeatherUnavailable``: a service did not answer; `CancellationError`: a newer opening of the same
    /// store has begun, or whoever listened was cancelled; else what the store says.
    case error(any Error)
}

/// The weather of the places, as it was judged when it was opened.
package struct OpenedWeather: Sendable {
    /// In the order of the places.
    package var outcomes: [CheckOutcome]
    /// A sentence about region codes of official warnings that are not known; `nil` if there are none to report.
    package var unknownRegions: String?
}

/// Opens the weather, and fails where a service does not answer: Realm's `AsyncOpen`. What did arrive is stored all the same.
///
/// Differs from Realm: a sequence instead of a property wrapper; it ends with ``OpenState/open(_:)`` or ``OpenState/error(_:)``.
package struct AsyncOpen: AsyncSequence, Sendable {
    package typealias Element = OpenState

    private let opening: WeatherOpening

    /// - Parameters:
    ///   - names: the places to open; `nil`: all there are.
    ///   - timeout: how long services are waited for; `nil`: as long as they take.
    package init(
        _ store: StormyStore, places names: [String]? = nil, _ behavior: OpenBehavior = .always, timeout: Duration? = nil,
        settings: StormySettings = .current
    ) { opening = WeatherOpening(store, names, behavior, timeout, settings, fallsBack: false) }

    /// Begins the opening. An earlier one of the same store in this process is cancelled.
    package func makeAsyncIterator() -> AsyncStream<OpenState>.Iterator { opening.begin().makeAsyncIterator() }
}

/// Opens the weather, and where a service does not answer the copy on this device: Realm's `AutoOpen`. What is opened says why, and how
/// old it is.
///
/// Differs from Realm: a sequence instead of a property wrapper; it ends with ``OpenState/open(_:)`` or ``OpenState/error(_:)``.
package struct AutoOpen: AsyncSequence, Sendable {
    package typealias Element = OpenState

    private let opening: WeatherOpening

    /// As ``AsyncOpen``'s.
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
