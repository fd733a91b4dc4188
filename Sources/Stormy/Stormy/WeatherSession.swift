import BackgroundTasks
import BackgroundTransfer
import Foundation
import StormyWeather
import UserNotifications

/// The background session `isStormy`: its transfers are the agent's, and their ends launch the app.
enum WeatherSession {
    static let identifier = "isStormy"

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

/// Is it stormy there? The shape of the WWDC22 sample, with a third answer for "unknown".
struct StormQuestion {
    let store: StormyStore
    let settings: StormySettings

    /// Asks the weather service through the background session.
    ///
    /// When the time of this launch runs out the await is cancelled: the app ends in time, and the download that is
    /// promoted here goes on in the agent, on the same connection, until its result launches the app.
    ///
    /// - Throws: what the store says when it cannot keep the answer: then nothing was checked.
    func isStormy(at place: Place) async throws -> Bool? {
        let session = URLSession(configuration: WeatherSession.configuration())
        guard let request = try? WeatherSession.request(for: place) else { return nil }
        let answer: (Data, URLResponse)?
        do {
            answer = try await withTaskCancellationHandler {
                try await session.data(for: request)
            } onCancel: {
                let task = session.downloadTask(with: request)
                task.taskDescription = place.name
                task.resume()
            }
        } catch let error as URLError where error.code == .cancelled {
            // Handed over: its end will be told.
            answer = nil
        } catch {
            try record(error.localizedDescription, of: place)
            answer = nil
        }
        guard let (data, response) = answer else { return nil }
        return try take(data, response, of: place)?.isStormy
    }

    /// Judges an answer and writes it down. `nil`: it could not be used, which is written down too.
    func take(_ data: Data, _ response: URLResponse?, of place: Place) throws -> Assessment? {
        let now = BGTaskScheduler.now
        let forecast: Forecast
        do {
            forecast = try OpenMeteo.parseForecast(data, status: (response as? HTTPURLResponse)?.statusCode ?? 200)
        } catch {
            try record(error.message, of: place)
            return nil
        }
        return try store.take(forecast, of: place, fetchedAt: now, rule: settings.rule, now: now)
    }
}

extension StormQuestion {
    /// Why there is no answer, for whoever asks later.
    fileprivate func record(_ trouble: String, of place: Place) throws {
        try store.noteTrouble(trouble, of: place, now: BGTaskScheduler.now)
    }
}

/// Takes what was handed over: the ended transfers of the session, one by one, each told at once.
final class HandedOverWeather: URLSessionDownloadDelegate, EventDelivery {
    private let question: StormQuestion
    let lastEvent = LastEvent()
    let trouble = FirstError()

    init(question: StormQuestion) { self.question = question }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        trouble.noting {
            guard let place = try place(of: downloadTask) else { return }
            if try question.take(Data(contentsOf: location), downloadTask.response, of: place)?.isStormy == true {
                try StormTeller(store: question.store).tell(place)
            }
        }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        guard let error else { return }
        trouble.noting {
            if let place = try place(of: task) { try question.record(error.localizedDescription, of: place) }
        }
    }

    /// By the address asked: the same place always asks the same one. `nil`: removed meanwhile.
    private func place(of task: URLSessionTask) throws -> Place? {
        let url = task.originalRequest?.url
        return try question.store.places().first { (try? WeatherSession.request(for: $0))?.url == url }
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
