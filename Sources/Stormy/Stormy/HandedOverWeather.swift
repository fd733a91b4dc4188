import BackgroundTasks
import BackgroundTransfer
import Foundation
import StormyWeather
import Synchronization

/// Stores the responses of weather requests that continued in the agent. Each response is stored and shown to the user as soon as
/// the response is delivered.
final class HandedOverWeather: URLSessionDownloadDelegate, EventDelivery {
    private let question: StormQuery
    let lastEvent = LastEvent()
    let trouble = FirstError()
    /// The places whose official services responded or failed in this launch.
    private let warned = Mutex<[Place]>([])
    /// The maximum time for the requests to MeteoAlarm, which replaces the services that failed.
    private static let meteoAlarmTime: Duration = .seconds(15)

    init(question: StormQuery) { self.question = question }

    /// Requests MeteoAlarm for the places whose official service failed. Call this method after the last event was delivered.
    func requestSubstitutes() async throws {
        let feeds = FeedWarnings(store: question.store, settings: question.settings)
        let places = warned.withLock { $0 }
        for place in try await feeds.refreshSubstitutes(for: places, within: Self.meteoAlarmTime) {
            try StormNotifier(store: question.store).show(place, .warnedOf)
        }
    }

    private func record(_ place: Place) {
        warned.withLock { places in
            if !places.contains(where: { $0.id == place.id }) { places.append(place) }
        }
    }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        trouble.recordingErrors {
            let data = try Data(contentsOf: location)
            if try storeWarnings(data, of: downloadTask) { return }
            var unknown: WeatherSource?
            for source in try sources(of: downloadTask) {
                do {
                    try receive(data, from: source, of: downloadTask, session)
                } catch is WeatherUnknown {
                    unknown = source
                }
            }
            try askAgain(unknown, of: downloadTask, session)
        }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        guard let error else { return }
        trouble.recordingErrors {
            let warnings = try warningSources(of: task)
            for source in warnings {
                record(source.place)
                try question.store.storeWarningTrouble(error.localizedDescription, by: source.service.rawValue, of: source.place)
            }
            if !warnings.isEmpty { return }
            var unknown: WeatherSource?
            for source in try sources(of: task) {
                unknown = source
                _ = try question.unknown(error.localizedDescription, at: source.place)
            }
            if (error as? URLError)?.code != .cancelled { try askAgain(unknown, of: task, session) }
        }
    }

    /// - Returns: `false` if the data is not a response to a request for warnings.
    private func storeWarnings(_ data: Data, of task: URLSessionTask) throws -> Bool {
        let sources = try warningSources(of: task)
        for source in sources {
            record(source.place)
            do {
                try source.storeResponse(data, task.response, into: question.store, now: BGTaskScheduler.now)
            } catch let error as WeatherError {
                try question.store.storeWarningTrouble(error, by: source.service.rawValue, of: source.place)
            }
            // The storms are also shown after an error, because a response that is readable in part may contain new warnings.
            try StormNotifier(store: question.store).show(source.place, .warnedOf)
        }
        return !sources.isEmpty
    }

    private func warningSources(of task: URLSessionTask) throws -> [WarningSource] {
        guard let url = task.originalRequest?.url else { return [] }
        return try question.store.places().flatMap { WarningSource.all(for: $0, question.settings) }.filter {
            $0.isAsked(by: url)
        }
    }

    private func receive(_ data: Data, from source: WeatherSource, of task: URLSessionTask, _ session: URLSession) throws {
        guard let request = task.originalRequest else { return }
        let (place, now) = (source.place, BGTaskScheduler.now)
        let answer: WeatherSource.ReadResult
        do {
            answer = try source.read(
                data, task.response, to: request, stored: question.store.lastAnswer(of: place, now: now), now: now)
        } catch let error as WeatherError {
            throw try question.unknown(error.message, at: place)
        }
        switch answer {
        case .forecast(let fetched):
            _ = try judge(fetched, of: place, now: now)
            try StormNotifier(store: question.store).show(place)
        case .more(let next):
            let task = session.downloadTask(with: next)
            task.taskDescription = source.label
            task.resume()
        }
    }

    /// Judges a response. The last forecast of another service is also used, if this forecast and the response belong to the same
    /// check. The forecast of another service can confirm thunder, and its values fill hours without values.
    private func judge(_ fetched: FetchedForecast, of place: Place, now: Date) throws -> Assessment {
        let rule = question.settings.rule
        guard let last = try question.store.lastForecast(of: place), last.provider != fetched.provider,
            (0..<Self.sameQuestion).contains(now.timeIntervalSince(last.fetchedAt))
        else { return try question.judge(fetched, of: place) }
        let lastGaps = rule.unknownHours(in: last.content, now: now)
        let isDoubtful = rule.assess(last.content, now: now).hasDoubtfulThunder
        if isDoubtful || !lastGaps.isEmpty {
            var filled = last.fetched
            filled.content = last.content.filled(lastGaps, from: fetched.content)
            return try question.judge(filled, beside: isDoubtful ? fetched.content : last.second, of: place)
        }
        var fetched = fetched
        fetched.content = fetched.content.filled(rule.unknownHours(in: fetched.content, now: now), from: last.content)
        return try question.judge(fetched, of: place)
    }

    /// The number of seconds within which the responses of two services belong to the same check.
    private static let sameQuestion: Double = 3600

    /// - Parameter source: The weather source whose response could not be used. `nil` if the source is unknown, for example
    ///   because this version sends a different request for the place.
    private func askAgain(_ source: WeatherSource?, of task: URLSessionTask, _ session: URLSession) throws {
        guard let source = try source ?? sourceByLabel(by: task) else { return }
        try question.askAgain(source, in: session)
    }

    private func sourceByLabel(by task: URLSessionTask) throws -> WeatherSource? {
        guard try sources(of: task).isEmpty, let label = task.taskDescription else { return nil }
        // For each service, the label begins with the place's name, so the name identifies the place.
        let name = label.prefix { $0 != "\t" }
        return try question.store.places().first { $0.name == name }.flatMap { question.settings.sources(for: $0).first }
    }

    /// Returns the sources for which the task sent its request. The addresses of the requests are compared. Two places with the
    /// same coordinates have the same address. If an earlier response contained the address of the request, the label identifies
    /// the source. The result is empty if the place was removed, or if this version sends a different request.
    private func sources(of task: URLSessionTask) throws -> [WeatherSource] {
        guard let url = task.originalRequest?.url else { return [] }
        let all = try question.store.places().flatMap { question.settings.sources(for: $0) }
        let now = BGTaskScheduler.now
        let asked = all.filter { (try? $0.firstRequest(now: now))?.isAsked(by: url) ?? false }
        if !asked.isEmpty { return asked }
        // Transfers of Open-Meteo are not identified by their labels. The label of such a transfer is only the name of a place,
        // and earlier versions used this label also for other requests.
        return all.filter { $0.provider != .openMeteo && $0.isMeant(by: task.taskDescription) }
    }
}
