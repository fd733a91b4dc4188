// Forecasts for a widget. Each place has a background session, which launches the app. The code was written for iOS, and only its
// imports were changed.
import BackgroundScenes
import BackgroundTransfer

struct Forecast: Codable, Sendable, Equatable {
    let place: String
    let high: Int
    let isStormy: Bool
}

struct ForecastApp: App {
    #if false  // lacks: UIApplicationDelegateAdaptor
        @UIApplicationDelegateAdaptor(AppDelegate.self) private var appDelegate
    #endif
    @Environment(\.scenePhase) private var scenePhase
    private let places = ["berlin", "potsdam"]

    var body: some Scene {
        WindowGroup {
            ForecastView()
        }
        .onChange(of: scenePhase) { _, newPhase in
            switch newPhase {
            case .active: break
            case .inactive: break
            case .background: ForecastScheduler.scheduleAppRefresh()
            @unknown default: break
            }
        }
        .backgroundTask(.appRefresh(ForecastScheduler.identifier)) {
            ForecastScheduler.scheduleAppRefresh()
            await ForecastFetcher.shared.fetch(places)
        }
        .backgroundTask(.urlSession(matching: { $0.hasPrefix(ForecastFetcher.sessionPrefix) })) { identifier in
            await ForecastFetcher.shared.handleEvents(forSession: identifier)
        }
    }
}

struct ForecastView: View {
    var body: some View {
        Text("Forecast")
    }
}

enum ForecastScheduler {
    static let identifier = "com.example.forecast.refresh"

    static func scheduleAppRefresh() {
        let request = BGAppRefreshTaskRequest(identifier: identifier)
        request.earliestBeginDate = Calendar.current.date(byAdding: .hour, value: 1, to: Date())
        try? BGTaskScheduler.shared.submit(request)
    }
}

actor ForecastFetcher {
    static let shared = ForecastFetcher()
    static let sessionPrefix = "com.example.forecast.session."

    private(set) var forecasts: [String: Forecast] = [:]
    private(set) var handled: [String] = []
    private var waiting: [String: CheckedContinuation<Void, Never>] = [:]
    private var finished: Set<String> = []

    /// Returns the session that has the given identifier. The session is created in each launch, so that the delegate receives
    /// the ends of earlier downloads.
    private func session(_ identifier: String) -> URLSession {
        let configuration = URLSessionConfiguration.background(withIdentifier: identifier)
        configuration.sessionSendsLaunchEvents = true
        configuration.isDiscretionary = false
        return URLSession(configuration: configuration, delegate: ForecastDownloads(fetcher: self), delegateQueue: nil)
    }

    func fetch(_ places: [String]) {
        for place in places {
            var request = URLRequest(url: URL(string: "https://forecast.test/v1/\(place).json")!)
            request.setValue("application/json", forHTTPHeaderField: "Accept")
            let task = session(Self.sessionPrefix + place).downloadTask(with: request)
            task.taskDescription = place
            task.resume()
        }
    }

    /// Returns when the delegate of the session has received all events.
    func handleEvents(forSession identifier: String) async {
        handled.append(identifier)
        _ = session(identifier)
        if finished.remove(identifier) == nil { await withCheckedContinuation { waiting[identifier] = $0 } }
        #if false  // lacks: WidgetCenter
            WidgetCenter.shared.reloadTimelines(ofKind: "Forecast")
        #endif
    }

    fileprivate func didFinishEvents(_ identifier: String, _ arrived: [Forecast]) {
        for forecast in arrived { forecasts[forecast.place] = forecast }
        if let continuation = waiting.removeValue(forKey: identifier) {
            continuation.resume()
        } else {
            finished.insert(identifier)
        }
    }
}

private final class ForecastDownloads: NSObject, URLSessionDownloadDelegate, @unchecked Sendable {
    private let fetcher: ForecastFetcher
    private var arrived: [Forecast] = []  // used only on the delegate queue

    init(fetcher: ForecastFetcher) { self.fetcher = fetcher }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        guard (downloadTask.response as? HTTPURLResponse)?.statusCode == 200,
            let forecast = try? JSONDecoder().decode(Forecast.self, from: Data(contentsOf: location))
        else { return }
        arrived.append(forecast)
    }

    func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {
        guard let identifier = session.configuration.identifier else { return }
        Task { [arrived] in await fetcher.didFinishEvents(identifier, arrived) }
    }
}
