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
        configuration.maximumBodyBytes = Int64(OpenMeteo.maximumAnswerBytes)
        return configuration
    }

    static func request(for place: Place) throws -> URLRequest {
        guard let coordinates = place.coordinates else { throw URLError(.badURL) }
        let text = try OpenMeteo.forecastURL(for: coordinates, baseURL: StormySettings.current.weatherBaseURL)
        guard let url = URL(string: text) else { throw URLError(.badURL) }
        var request = URLRequest(url: url)
        request.setValue(StormySettings.current.userAgent, forHTTPHeaderField: "User-Agent")
        return request
    }
}

/// There is no answer, or none that can be used. It is written down at its place.
struct WeatherUnknown: Error {
    let place: Place
    let reason: String
}

/// Is it stormy there? The shape of the WWDC22 sample, with a third answer for what is handed over.
package struct StormQuestion {
    let store: StormyStore
    let settings: StormySettings

    /// Asks the weather service through the background session.
    ///
    /// When the time of this launch runs out the await is cancelled: the app ends in time, and the download that is
    /// promoted here goes on in the agent, on the same connection, until its result launches the app.
    ///
    /// - Returns: `nil`: handed over.
    /// - Throws: ``WeatherUnknown``; what the store says when it cannot keep the answer. Nothing was checked then.
    func isStormy(at place: Place) async throws -> Bool? {
        let session = URLSession(configuration: WeatherSession.configuration())
        let request = try WeatherSession.request(for: place)
        let (data, response): (Data, URLResponse)
        let began = BGTaskScheduler.now
        do {
            (data, response) = try await withTaskCancellationHandler {
                try await session.data(for: request)
            } onCancel: {
                let task = session.downloadTask(with: request)
                task.taskDescription = place.name
                task.resume()
            }
        } catch let error as URLError where error.code == .cancelled && Task.isCancelled {
            // Handed over: its end will be told. Without that a person has cancelled the transfer, and there is no answer.
            try noteHandedOver(request, since: began, at: place)
            return nil
        } catch {
            throw try unknown(error.localizedDescription, at: place)
        }
        return try take(data, response, of: place).isStormy
    }

    /// Nobody knows when there will be an answer: until then it is said why there is none.
    private func noteHandedOver(_ request: URLRequest, since began: Date, at place: Place) throws {
        let transfers = try BackgroundTransfers.unfinished(session: WeatherSession.identifier)
        let own = transfers.first { $0.url == request.url?.absoluteString }
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
    /// - Throws: ``WeatherUnknown``; what the store says.
    func take(_ data: Data, _ response: URLResponse?, of place: Place) throws -> Assessment {
        let now = BGTaskScheduler.now
        let forecast: Forecast
        do {
            forecast = try OpenMeteo.parseForecast(data, status: (response as? HTTPURLResponse)?.statusCode ?? 200)
        } catch {
            throw try unknown(error.message, at: place)
        }
        // Of another day, or with nothing in it: no answer, and never calm. What is stored stays.
        if case .unknown(let why) = settings.rule.assess(forecast, now: now).verdict { throw try unknown(why, at: place) }
        let assessment = try store.take(forecast, of: place, fetchedAt: now, rule: settings.rule, now: now)
        Self.withdrawTrouble(at: place)
        return assessment
    }

    /// Asks again later where an answer that was handed over could not be used: no launch is left that could be made up for. Once for each
    /// address, however many places lie there and however many answers ended.
    func askAgain(_ request: URLRequest, for name: String, in session: URLSession) throws {
        guard try NoonSchedule(store: store, settings: settings).isEnabled else { return }
        let waiting = try BackgroundTransfers.unfinished(session: WeatherSession.identifier)
        guard !waiting.contains(where: { $0.url == request.url?.absoluteString }) else { return }
        let task = session.downloadTask(with: request)
        task.taskDescription = name
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

/// Takes what was handed over: the ended transfers of the session, one by one, each told at once.
final class HandedOverWeather: URLSessionDownloadDelegate, EventDelivery {
    private let question: StormQuestion
    let lastEvent = LastEvent()
    let trouble = FirstError()

    init(question: StormQuestion) { self.question = question }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        trouble.noting {
            let data = try Data(contentsOf: location)
            var unknown: WeatherUnknown?
            for place in try places(of: downloadTask) {
                do {
                    guard try question.take(data, downloadTask.response, of: place).isStormy == true else { continue }
                    try StormTeller(store: question.store).tell(place)
                } catch let error as WeatherUnknown {
                    unknown = error
                }
            }
            try askAgain(for: unknown?.place, of: downloadTask, session)
        }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        guard let error else { return }
        trouble.noting {
            var unknown: WeatherUnknown?
            for place in try places(of: task) { unknown = try question.unknown(error.localizedDescription, at: place) }
            if (error as? URLError)?.code != .cancelled { try askAgain(for: unknown?.place, of: task, session) }
        }
    }

    /// - Parameter place: whose weather stayed unknown. `nil`: nobody's, or that of a place which is asked for in other words today.
    private func askAgain(for place: Place?, of task: URLSessionTask, _ session: URLSession) throws {
        guard let place = try place ?? placeAskedInOtherWords(by: task) else { return }
        try question.askAgain(WeatherSession.request(for: place), for: place.name, in: session)
    }

    private func placeAskedInOtherWords(by task: URLSessionTask) throws -> Place? {
        guard try places(of: task).isEmpty, let name = task.taskDescription else { return nil }
        return try question.store.places().first { $0.name == name }
    }

    /// By what was asked, of whichever service: the same place always asks the same, and so do two at one point. Empty: removed
    /// meanwhile, or this version asks for more.
    private func places(of task: URLSessionTask) throws -> [Place] {
        guard let url = task.originalRequest?.url else { return [] }
        return try question.store.places().filter { place in
            let own = try? WeatherSession.request(for: place).url
            return own?.query == url.query && own?.path == url.path
        }
    }
}

/// What fails is said on standard error; the agent keeps that in its log.
@discardableResult
func logged<Value>(_ name: String, _ body: () throws -> Value) -> Value? {
    do { return try body() } catch {
        logError("\(name) could not be recorded: \(error)")
        return nil
    }
}

func logError(_ text: String) { FileHandle.standardError.write(Data("stormy: \(text)\n".utf8)) }
