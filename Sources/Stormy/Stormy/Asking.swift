import BackgroundRuntime
import BackgroundTransfer
import Foundation
import StormyWeather

// This file contains functions that all requests to weather services use.

/// Runs `work` and returns its result. The work is cancelled after the time `limit`, or when the awaiting task is cancelled.
///
/// - Parameter limit: The maximum duration. `nil` for no limit.
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

/// Awaits a response. If the awaiting task is cancelled, the call returns and the download is not cancelled. The agent continues
/// the download on the same connection, and launches the app with the result.
///
/// - Parameter label: The description of the download, if the download continues in the agent.
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
    /// Returns a configuration for a request if a user waits for the response.
    ///
    /// - Parameters:
    ///   - patience: The maximum number of seconds in which no byte arrives.
    ///   - longest: The maximum number of seconds for the complete response.
    ///   - mostBytes: The maximum size of a response after decompression, in bytes.
    static func question(
        patience: Double, longest: Double, mostBytes: Int = ServiceResponse.maximumBytes
    ) -> URLSessionConfiguration {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForRequest = patience
        configuration.timeoutIntervalForResource = longest
        configuration.maximumBodyBytes = Int64(mostBytes)
        // The cache is off, because Stormy's store keeps the responses with their dates. Cookies are off, because a service must
        // not recognize an installation.
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

    /// Returns whether this request has the path and the query of the address `other`. The host is not compared, because a mirror
    /// receives the same request.
    func isAsked(by other: URL) -> Bool { url?.query == other.query && url?.path == other.path }
}
