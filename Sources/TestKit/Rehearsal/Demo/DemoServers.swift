import FaultyServer
import Foundation

/// The demo's weather service and photo server on the loopback interface. Both servers use real HTTP. The weather response takes
/// longer than the time limit of the check.
struct DemoServers {
    private let server: FaultyServer
    private let photos: DavStore
    /// The temporary folder of the photos, which is removed after the demo; `nil` if the photos are kept.
    private let temporary: URL?

    /// - Parameter evidence: The folder that keeps the server's log and the received photos, so that another program can check
    ///   them.
    static func start(evidence: URL?) async throws -> DemoServers {
        if let evidence { try FileManager.default.createDirectory(at: evidence, withIntermediateDirectories: true) }
        let server = try await FaultyServer.start(logFile: evidence?.appendingPathComponent("server.jsonl").path)
        let folder = evidence?.appendingPathComponent("received")
        if let folder { try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true) }
        // The store does not create a temporary folder itself, because this folder would not be removed if the demo is
        // interrupted.
        let temporary = try folder == nil ? Cleanup.shared.makeFolder("stormy-demo-photos") : nil
        let photos = try DavStore(prefix: "/photos", directory: folder ?? temporary)
        server.mount(photos)
        return DemoServers(server: server, photos: photos, temporary: temporary)
    }

    var url: String { server.url }

    /// Serves the first half of the forecast immediately, and the second half after ``finishForecast()``.
    func serveSlowForecast(now: Date) { server.route("GET", "/v1/forecast*", Self.halfForecast(now: now, until: "rest")) }

    /// Returns a response that sends half of a stormy forecast immediately, and the second half when a gate is open. Like a
    /// response of Open-Meteo, the response is chunked and has no validator. The first half is therefore lost if the connection
    /// ends.
    static func halfForecast(now: Date, until gate: String) -> ResponseScript {
        let forecast = stormyForecast(now: now)
        let half = forecast.prefix(forecast.count / 2)
        return ResponseScript([
            .status(200), .headers(["Content-Type": "application/json", "Transfer-Encoding": "chunked"]),
            .chunked(.bytes(half)), .hold(until: gate), .chunked(.bytes(forecast.dropFirst(half.count))), .chunkEnd(),
        ])
    }

    func finishForecast() { server.openGate("rest") }

    func waitForWeatherRequest() async throws {
        _ = try await server.waitForRequest(timeout: .seconds(120)) { $0.path.hasPrefix("/v1/forecast") }
    }

    /// The number of weather requests, the number of their connections, and the number of finished requests.
    var weatherTraffic: (requests: Int, connections: Int, finished: Int) {
        let requests = server.requests(matching: "/v1/forecast*")
        return (requests.count, Set(requests.map(\.connection)).count, requests.filter { $0.outcome == .answered }.count)
    }

    func receivedPhoto(_ name: String) -> Data? { photos.contents(of: "/photos/\(name)") ?? photos.contents(of: name) }

    var receivedFiles: [String] { photos.files }

    func stop() async {
        await server.stop()
        if let temporary { Cleanup.shared.remove(temporary) }
    }

    /// Returns a forecast with three hours of thunder, four hours from now.
    static func stormyForecast(now: Date) -> Data {
        let start = Int(now.timeIntervalSince1970 / 3600) * 3600
        let hours = (0..<72).map { start + $0 * 3600 }
        let codes = hours.indices.map { (4...6).contains($0) ? ($0 == 5 ? 96 : 95) : 3 }
        let gusts = hours.indices.map { (4...6).contains($0) ? 92.0 : 18.0 }
        let forecast: [String: Any] = [
            "latitude": -43.1, "longitude": 147.5, "utc_offset_seconds": TimeZone.current.secondsFromGMT(for: now),
            "timezone": TimeZone.current.identifier,
            "hourly_units": ["time": "unixtime", "wind_gusts_10m": "km/h", "precipitation": "mm"],
            "hourly": [
                "time": hours, "weather_code": codes, "wind_gusts_10m": gusts, "precipitation": hours.map { _ in 1.8 },
                "temperature_2m": hours.map { _ in 17.5 },
            ],
        ]
        return (try? JSONSerialization.data(withJSONObject: forecast, options: [.sortedKeys])) ?? Data()
    }
}
