import BackgroundRuntime
import BackgroundTasks
import BackgroundTransfer
import Foundation
import StormyWeather
import UserNotifications

/// The background session `isStormy`. The agent makes the transfers of this session, and launches the app when the transfers end.
package enum WeatherSession {
    package static let identifier = "isStormy"

    /// The number of seconds without progress after which a weather transfer fails. Older data would be too old to recognize a
    /// storm in time.
    private static let patience: Double = 2 * 3600

    static func configuration() -> URLSessionConfiguration {
        let configuration = URLSessionConfiguration.background(withIdentifier: identifier)
        configuration.sessionSendsLaunchEvents = true
        configuration.timeoutIntervalForResource = patience
        configuration.maximumBodyBytes = Int64(ServiceResponse.maximumBytes)
        return configuration
    }
}

/// The error that is thrown if no usable response arrived. The reason is stored for the place.
struct WeatherUnknown: Error {
    let place: Place
    let reason: String
}

/// Determines whether a storm is expected at a place, like the sample code of Apple's conference WWDC22. A third result is also
/// possible: the request continues in the agent.
package struct StormQuery {
    let store: StormyStore
    let settings: StormySettings

    /// Requests the weather services through the background session, one after the other until a service sends a usable response.
    ///
    /// When the launch reaches its time limit, the await is cancelled. The app ends in time, and the download continues in the
    /// agent.
    ///
    /// - Parameter warningsAsked: A closure that is called once, after the official services of the place were requested.
    /// - Returns: `nil` if the request continues in the agent.
    /// - Throws: ``WeatherUnknown``, or an error of the store if the response cannot be stored. After an error, the place was not
    ///   checked.
    func assessment(
        at place: Place, _ warningsAsked: @escaping @Sendable () -> Void = {}
    ) async throws -> Assessment? {
        async let warnings: Void = requestWarnings(at: place, warningsAsked)
        let answer: Result<(FetchedForecast, ArraySlice<WeatherSource>)?, any Error>
        do { answer = .success(try await askForForecast(at: place)) } catch { answer = .failure(error) }
        // The requests for warnings must be complete, because warnings are part of the judgement, even if there is no forecast.
        try await warnings
        guard let (fetched, others) = try answer.get() else { return nil }
        return try await handle(fetched, of: place, others: others)
    }

    /// Requests the official services of a place. If a service does not respond, its earlier warnings stay valid and the problem
    /// is reported. A slow request continues in the agent.
    private func requestWarnings(at place: Place, _ asked: @Sendable () -> Void) async throws {
        defer { asked() }
        let sources = try WarningSource.all(for: place, settings, askedAt: store.warningsAskedAt(at: place))
        await withTaskGroup(of: Void.self) { group in
            for source in sources {
                group.addTask { await logged("the warnings of \(place.name)") { try await request(source) } }
            }
        }
    }

    private func request(_ source: WarningSource) async throws {
        let request = try source.request()
        let session = URLSession(configuration: WeatherSession.configuration())
        do {
            let (data, response) = try await within(Self.patience) {
                try await dataOrPromotion(of: request, in: session, label: source.label)
            }
            let now = BGTaskScheduler.now
            // This request does not continue in the agent, because its response is useful only together with the response that
            // contains the warnings.
            let question = URLSession(configuration: .question(patience: Self.timePatience, longest: Self.timePatience))
            let time = try await source.separateDataTime(data, response, in: store, now: now) { try await question.data(for: $0) }
            try source.storeResponse(data, response, into: store, separateTime: time, now: now)
        } catch let error as WeatherError {
            try store.storeWarningTrouble(error, by: source.service.rawValue, of: source.place)
        } catch let error as URLError {
            // The await was cancelled and the request continues in the agent, or the user cancelled the request. In both cases,
            // the problem is reported until a response arrives.
            let why =
                error.code == .cancelled
                ? "no response has arrived yet; the request continues in the background" : error.localizedDescription
            try store.storeWarningTrouble(why, by: source.service.rawValue, of: source.place)
        }
    }

    /// - Returns: `nil` if the request continues in the agent.
    private func askForForecast(at place: Place) async throws -> (FetchedForecast, ArraySlice<WeatherSource>)? {
        let sources = settings.sources(for: place)
        if sources.isEmpty { throw try unknown("the coordinates of the place cannot be read", at: place) }
        var reasons: [String] = []
        var handedOver: HandedOver?
        for (index, source) in sources.enumerated() {
            switch try await request(source, isLast: index == sources.count - 1) {
            // The agent launches the app when the transfer ends, unless the user cancels the transfer.
            case .handedOver(let what): handedOver = what
            case .trouble(let reason): reasons.append(sources.count == 1 ? reason : "\(source.name): \(reason)")
            case .answer(let fetched):
                for reason in reasons { logError("\(place.name): \(source.name) was used, because \(reason)") }
                return (fetched, sources[(index + 1)...])
            }
            if Task.isCancelled { break }
        }
        if let handedOver {
            try storeHandOverReason(handedOver, at: place)
            return nil
        }
        throw try unknown(reasons.joined(separator: "; "), at: place)
    }

    private enum ServiceReply {
        case answer(FetchedForecast)
        /// The request was not complete in time, and continues in the agent.
        case handedOver(HandedOver)
        /// The service sent no usable response.
        case trouble(String)
    }

    /// The time after which a request continues in the background if the service does not respond and another service can be
    /// requested.
    private static let patience: Duration = .seconds(10)
    /// The maximum number of seconds for a request for the time of a service's data.
    private static let timePatience = 5.0

    private func request(_ source: WeatherSource, isLast: Bool) async throws -> ServiceReply {
        let session = URLSession(configuration: WeatherSession.configuration())
        let began = BGTaskScheduler.now
        let stored = try store.lastAnswer(of: source.place, now: began)
        do {
            return .answer(
                try await within(isLast ? nil : Self.patience) {
                    try await source.fetch(stored: stored, now: began) { request in
                        do {
                            return try await dataOrPromotion(of: request, in: session, label: source.label)
                        } catch let error as URLError where error.code == .cancelled && Task.isCancelled {
                            throw HandedOver(request: request, began: began)
                        }
                    }
                })
        } catch let error as HandedOver {
            return .handedOver(error)
        } catch let error as WeatherError {
            return .trouble(error.message)
        } catch {
            return .trouble(error.localizedDescription)
        }
    }

    private struct HandedOver: Error {
        let request: URLRequest
        let began: Date
    }

    /// Stores why no response has arrived yet. The time at which the response will arrive is unknown.
    private func storeHandOverReason(_ handedOver: HandedOver, at place: Place) throws {
        let (request, began) = (handedOver.request, handedOver.began)
        let transfers = try BackgroundTransfers.unfinished(session: WeatherSession.identifier)
        let own = transfers.first { $0.requestedURL == request.url?.absoluteString }
        // A transfer that is queued behind other transfers of the service has no recorded problem. The problem of another
        // transfer is therefore reported.
        let ofService = transfers.first { $0.trouble != nil && $0.url.flatMap(URL.init(string:))?.host == request.url?.host }
        if let trouble = (own?.trouble ?? ofService?.trouble)?.message {
            _ = try unknown("\(trouble) The request is tried again.", at: place)
            return
        }
        let waits = "no response arrived within the time limit; the request continues in the background"
        let now = BGTaskScheduler.now
        // At the first request, the user is not notified, because the response may arrive soon.
        let isFirst = try store.check(of: place) == nil && now.timeIntervalSince(began) < Self.longWait
        if isFirst { try store.storeCheckTrouble(waits, of: place, now: now) } else { _ = try unknown(waits, at: place) }
    }

    /// The number of seconds after which Stormy assumes that a service does not respond. This value is shorter than the time
    /// limit of a check.
    private static let longWait: Double = 20

    /// Judges a response and stores it.
    ///
    /// - Parameter others: The services that are requested if thunder is unconfirmed, or if this service has no values for some
    ///   hours.
    /// - Throws: ``WeatherUnknown``, or an error of the store.
    func handle(
        _ fetched: FetchedForecast, of place: Place, others: ArraySlice<WeatherSource> = []
    ) async throws -> Assessment {
        var others = others
        do {
            let taken = try await ForecastJudge(store: store, settings: settings).judge(fetched, of: place) {
                while !Task.isCancelled, let other = others.popFirst() {
                    if case .answer(let answer) = try await request(other, isLast: false) { return answer.content }
                }
                return nil
            }
            let count = taken.assessment.unknownHours?.hourCount ?? 0
            if count > 0 {
                logError(
                    "\(place.name): no service has values for \(count) of the next \(settings.rule.horizonHours) hours. A storm in these hours is not detected"
                )
            }
            return taken.assessment
        } catch let error as ForecastJudge.Unusable {
            throw try unknown(error.why, at: place)
        }
    }

    /// Judges and stores a response that was awaited in the background.
    ///
    /// - Throws: ``WeatherUnknown``, or an error of the store.
    func judge(_ fetched: FetchedForecast, beside second: Forecast? = nil, of place: Place) throws -> Assessment {
        do {
            return try ForecastJudge(store: store, settings: settings).judge(fetched, beside: second, of: place)
        } catch let error as ForecastJudge.Unusable {
            throw try unknown(error.why, at: place)
        }
    }

    /// Requests a forecast again later, because the agent received an unusable response and the launch that sent the request has
    /// ended. Each address is requested once, even if several places or ended transfers need the same address.
    func askAgain(_ source: WeatherSource, in session: URLSession) throws {
        guard try NoonSchedule(store: store, settings: settings).isEnabled else { return }
        let request = try source.firstRequest(now: BGTaskScheduler.now)
        let waiting = try BackgroundTransfers.unfinished(session: WeatherSession.identifier)
        guard !waiting.contains(where: { $0.requestedURL == request.url?.absoluteString }) else { return }
        let task = session.downloadTask(with: request)
        task.taskDescription = source.label
        task.earliestBeginDate = BGTaskScheduler.now.addingTimeInterval(Self.pause)
        task.resume()
    }

    /// The number of seconds until a request is repeated, if the agent received an unusable response.
    private static let pause: Double = 1800

    /// Stores why no response arrived. Notifies the user if there has been no response for a long time.
    func unknown(_ reason: String, at place: Place) throws -> WeatherUnknown {
        let now = BGTaskScheduler.now
        try store.storeCheckTrouble(reason, of: place, now: now)
        let last = try store.lastForecast(of: place)?.fetchedAt ?? .distantPast
        if now.timeIntervalSince(last) > Self.longestSilence {
            StormyTrouble.show(Self.trouble(at: place), "The weather is unknown", "\(place.name): \(reason)")
        }
        return WeatherUnknown(place: place, reason: reason)
    }

    /// Removes the notification about a missing response, because a response has arrived, or because the place is not checked any
    /// more.
    package static func withdrawTrouble(at place: Place) { StormyTrouble.isOver(trouble(at: place)) }

    private static func trouble(at place: Place) -> String { "weather-\(place.id ?? 0)" }

    /// The number of seconds without a forecast after which the user is notified. The value is a day, plus an hour in which the
    /// check is retried.
    private static let longestSilence: Double = 25 * 3600
}

/// Logs an error on standard error. The agent copies standard error to its log.
func logged(_ name: String, _ body: () async throws -> Void) async {
    do { try await body() } catch { logError("\(name) could not be recorded: \(error)") }
}

/// Logs an error of a synchronous call.
@discardableResult
func logged<Value>(_ name: String, _ body: () throws -> Value) -> Value? {
    do { return try body() } catch {
        logError("\(name) could not be recorded: \(error)")
        return nil
    }
}

func logError(_ text: String) { AppRuntime.shared.report("stormy: \(text)") }
