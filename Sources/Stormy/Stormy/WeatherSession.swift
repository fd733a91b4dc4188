import BackgroundRuntime
import BackgroundTasks
import BackgroundTransfer
import Foundation
import StormyWeather
import UserNotifications

/// The background session `isStormy`: its transfers are the agent's, and their ends launch the app.
package enum WeatherSession {
    package static let identifier = "isStormy"

    /// Seconds without progress after which a weather transfer is given up: older data would not help tonight.
    private static let patience: Double = 2 * 3600

    static func configuration() -> URLSessionConfiguration {
        let configuration = URLSessionConfiguration.background(withIdentifier: identifier)
        configuration.sessionSendsLaunchEvents = true
        configuration.timeoutIntervalForResource = patience
        configuration.maximumBodyBytes = Int64(ServiceAnswer.maximumBytes)
        return configuration
    }
}

/// There is no answer, or none that can be used. It is written down at its place.
struct WeatherUnknown: Error {
    let place: Place
    let reason: String
}

/// Is it going to be stormy there? The shape of the WWDC22 sample, with a third answer for what is handed over.
package struct StormQuestion {
    let store: StormyStore
    let settings: StormySettings

    /// Asks the weather services through the background session, one after the other until one has an answer.
    ///
    /// When the time of this launch runs out the await is cancelled: the app ends in time, and the download that is
    /// promoted then goes on in the agent.
    ///
    /// - Parameter warningsAsked: called once, after the official services of the place were requested.
    /// - Returns: `nil`: handed over.
    /// - Throws: ``WeatherUnknown``; what the store says when it cannot keep the answer. Nothing was checked then.
    func assessment(
        at place: Place, _ warningsAsked: @escaping @Sendable () -> Void = {}
    ) async throws -> Assessment? {
        async let warnings: Void = lookAtWarnings(at: place, warningsAsked)
        let answer: Result<(FetchedForecast, ArraySlice<WeatherSource>)?, any Error>
        do { answer = .success(try await askForForecast(at: place)) } catch { answer = .failure(error) }
        // What is warned of counts in the judgement, and stands by itself where there is no forecast.
        try await warnings
        guard let (fetched, others) = try answer.get() else { return nil }
        return try await take(fetched, of: place, others: others)
    }

    /// What official services warn of there. One that does not answer leaves what it warned of before, and is said; one that says nothing
    /// is waited for in the background after a while.
    private func lookAtWarnings(at place: Place, _ asked: @Sendable () -> Void) async throws {
        defer { asked() }
        let sources = try WarningSource.all(for: place, settings, askedAt: store.warningsAskedAt(at: place))
        await withTaskGroup(of: Void.self) { group in
            for source in sources {
                group.addTask { await logged("the warnings of \(place.name)") { try await ask(source) } }
            }
        }
    }

    private func ask(_ source: WarningSource) async throws {
        let request = try source.request()
        let session = URLSession(configuration: WeatherSession.configuration())
        do {
            let (data, response) = try await within(Self.patience) {
                try await dataOrPromotion(of: request, in: session, label: source.label)
            }
            let now = BGTaskScheduler.now
            // Not handed over: this answer is useless without the other one.
            let question = URLSession(configuration: .question(patience: Self.timePatience, longest: Self.timePatience))
            let time = try await source.separateDataTime(data, response, in: store, now: now) { try await question.data(for: $0) }
            try source.take(data, response, into: store, separateTime: time, now: now)
        } catch let error as WeatherError {
            try store.noteWarningTrouble(error, by: source.service.rawValue, of: source.place)
        } catch let error as URLError {
            // Handed over, or cancelled by hand: both are said until there is an answer.
            let why = error.code == .cancelled ? "no answer so far; it is waited for" : error.localizedDescription
            try store.noteWarningTrouble(why, by: source.service.rawValue, of: source.place)
        }
    }

    /// - Returns: `nil`: handed over.
    private func askForForecast(at place: Place) async throws -> (FetchedForecast, ArraySlice<WeatherSource>)? {
        let sources = settings.sources(for: place)
        if sources.isEmpty { throw try unknown("where it lies cannot be read", at: place) }
        var reasons: [String] = []
        var handedOver: HandedOver?
        for (index, source) in sources.enumerated() {
            switch try await ask(source, isLast: index == sources.count - 1) {
            // Its end will be told. Without that a person has cancelled the transfer, and there is no answer.
            case .handedOver(let what): handedOver = what
            case .trouble(let reason): reasons.append(sources.count == 1 ? reason : "\(source.name): \(reason)")
            case .answer(let fetched):
                for reason in reasons { logError("\(place.name): asked \(source.name), as \(reason)") }
                return (fetched, sources[(index + 1)...])
            }
            if Task.isCancelled { break }
        }
        if let handedOver {
            try noteHandedOver(handedOver, at: place)
            return nil
        }
        throw try unknown(reasons.joined(separator: "; "), at: place)
    }

    private enum Word {
        case answer(FetchedForecast)
        /// It goes on in the agent.
        case handedOver(HandedOver)
        /// There is no answer, or none that can be used.
        case trouble(String)
    }

    /// For a service that says nothing, where another can be asked: it is waited for in the background from then on.
    private static let patience: Duration = .seconds(10)
    /// Seconds for the time of a service's data.
    private static let timePatience = 5.0

    private func ask(_ source: WeatherSource, isLast: Bool) async throws -> Word {
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

    /// Nobody knows when there will be an answer: until then it is said why there is none.
    private func noteHandedOver(_ handedOver: HandedOver, at place: Place) throws {
        let (request, began) = (handedOver.request, handedOver.began)
        let transfers = try BackgroundTransfers.unfinished(session: WeatherSession.identifier)
        let own = transfers.first { $0.requestedURL == request.url?.absoluteString }
        // One that waits behind others of its service knows no trouble of its own.
        let ofService = transfers.first { $0.trouble != nil && $0.url.flatMap(URL.init(string:))?.host == request.url?.host }
        if let trouble = (own?.trouble ?? ofService?.trouble)?.message {
            _ = try unknown("\(trouble) It is tried again.", at: place)
            return
        }
        let waits = "no answer when the time was up; it is waited for"
        let now = BGTaskScheduler.now
        // The first of all, asked for a moment ago, may come at any moment.
        let isFirst = try store.check(of: place) == nil && now.timeIntervalSince(began) < Self.longWait
        if isFirst { try store.noteTrouble(waits, of: place, now: now) } else { _ = try unknown(waits, at: place) }
    }

    /// Seconds after which a service that has said nothing is said to be silent: most of the time that a check has.
    private static let longWait: Double = 20

    /// Judges an answer and writes it down.
    ///
    /// - Parameter others: services that are requested for thunder that nothing confirms, and for hours that this service does not know.
    /// - Throws: ``WeatherUnknown``; what the store says.
    func take(
        _ fetched: FetchedForecast, of place: Place, others: ArraySlice<WeatherSource> = []
    ) async throws -> Assessment {
        var others = others
        do {
            let taken = try await AnswerTaking(store: store, settings: settings).take(fetched, of: place) {
                while !Task.isCancelled, let other = others.popFirst() {
                    if case .answer(let answer) = try await ask(other, isLast: false) { return answer.content }
                }
                return nil
            }
            let count = taken.assessment.unknownHours?.hourCount ?? 0
            if count > 0 {
                logError(
                    "\(place.name): no service has values for \(count) of the next \(StormRule.reportedHours) hours: a storm then is not seen"
                )
            }
            return taken.assessment
        } catch let error as AnswerTaking.Unusable {
            throw try unknown(error.why, at: place)
        }
    }

    /// The same of one that was waited for in the background.
    ///
    /// - Throws: ``WeatherUnknown``; what the store says.
    func take(_ fetched: FetchedForecast, beside second: Forecast? = nil, of place: Place) throws -> Assessment {
        do {
            return try AnswerTaking(store: store, settings: settings).take(fetched, beside: second, of: place)
        } catch let error as AnswerTaking.Unusable {
            throw try unknown(error.why, at: place)
        }
    }

    /// Asks again later where an answer that was handed over could not be used: no launch is left that could be made up for. Once for each
    /// address, however many places lie there and however many answers ended.
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

    /// Seconds until an answer that was handed over and could not be used is asked for again.
    private static let pause: Double = 1800

    /// Writes down why there is no answer, for whoever asks later, and tells the person where there has been none for long.
    func unknown(_ reason: String, at place: Place) throws -> WeatherUnknown {
        let now = BGTaskScheduler.now
        try store.noteTrouble(reason, of: place, now: now)
        let last = try store.lastForecast(of: place)?.fetchedAt ?? .distantPast
        if now.timeIntervalSince(last) > Self.longestSilence {
            StormyTrouble.tell(Self.trouble(at: place), "The weather is not known", "\(place.name): \(reason)")
        }
        return WeatherUnknown(place: place, reason: reason)
    }

    /// There is an answer, or nobody asks any more: what was told of none is taken back.
    package static func withdrawTrouble(at place: Place) { StormyTrouble.isOver(trouble(at: place)) }

    private static func trouble(at place: Place) -> String { "weather-\(place.id ?? 0)" }

    /// Seconds since the last forecast: a day, and an hour in which the check was tried again.
    private static let longestSilence: Double = 25 * 3600
}

/// What fails is said on standard error; the agent keeps that in its log.
func logged(_ name: String, _ body: () async throws -> Void) async {
    do { try await body() } catch { logError("\(name) could not be recorded: \(error)") }
}

/// The same of what waits for nothing.
@discardableResult
func logged<Value>(_ name: String, _ body: () throws -> Value) -> Value? {
    do { return try body() } catch {
        logError("\(name) could not be recorded: \(error)")
        return nil
    }
}

func logError(_ text: String) { AppRuntime.shared.report("stormy: \(text)") }
