import BackgroundRuntime
import BackgroundTransfer
import Foundation
import StormyWeather

// What all questions to weather services have in common.

/// Lets work run until it is done. The work is cancelled when its time is up, or when the awaiting task is cancelled.
///
/// - Parameter limit: `nil` for no limit.
func within<Value: Sendable>(
    _ limit: Duration?, _ work: @escaping @Sendable () async throws -> Value
) async throws -> Value {
    let runtime = AppRuntime.ofWork
    let working = Task(executorPreference: runtime.executor) { try await work() }
    let cancelAlarm = limit.map { runtime.alarm(after: $0 / .seconds(1)) { working.cancel() } }
    defer { cancelAlarm?() }
    return try await withTaskCancellationHandler {
        try await working.value
    } onCancel: {
        working.cancel()
    }
}

/// Awaits a response. If the awaiting task is cancelled, the await ends. The download continues in the agent, on the same connection, until
/// the result launches the app.
///
/// - Parameter label: the description of the download that continues.
func dataOrPromotion(
    of request: URLRequest, in session: URLSession, label: String
) async throws -> (Data, URLResponse) {
    try await withTaskCancellationHandler {
        try await session.data(for: request)
    } onCancel: {
        let task = session.downloadTask(with: request)
        task.taskDescription = label
        task.resume()
    }
}

extension URLSessionConfiguration {
    /// For a question that somebody waits for.
    ///
    /// - Parameters:
    ///   - patience: seconds without a byte.
    ///   - longest: seconds for all of an answer, however it drips.
    ///   - mostBytes: bytes of an answer, decompressed.
    static func question(
        patience: Double, longest: Double, mostBytes: Int = ServiceAnswer.maximumBytes
    ) -> URLSessionConfiguration {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForRequest = patience
        configuration.timeoutIntervalForResource = longest
        configuration.maximumBodyBytes = Int64(mostBytes)
        // What a service said is kept in Stormy's own store, with its dates; a service needs to know nobody again.
        (configuration.urlCache, configuration.httpCookieStorage) = (nil, nil)
        return configuration
    }
}

extension URLRequest {
    init(_ asked: WeatherRequest, userAgent: String) throws {
        guard let url = URL(string: asked.url) else { throw URLError(.badURL) }
        self.init(url: url)
        setValue(userAgent, forHTTPHeaderField: "User-Agent")
        for (name, value) in asked.headers { setValue(value, forHTTPHeaderField: name) }
    }

    /// Of whichever server: a mirror is asked in the same words.
    func isAsked(by other: URL) -> Bool { url?.query == other.query && url?.path == other.path }
}
