import BackgroundScenes
import Foundation

/// The background part of Stormy, which the agent launches. The command line tool is separate.
package struct StormyApp: App {
    private let responder: NotificationResponder

    package init() {
        responder = NotificationResponder()
        UNUserNotificationCenter.current().delegate = responder
        StormNotifier.registerCategory()
    }

    package var body: some Scene {
        Worker()
            .backgroundTask(.appRefresh(NoonSchedule.identifier)) {
                await Self.withStore { try await NoonCheck(store: $0, settings: .current).run() }
            }
            .backgroundTask(.urlSession(WeatherSession.identifier)) {
                await Self.withStore {
                    let delivery = HandedOverWeather(question: StormQuery(store: $0, settings: .current))
                    try await delivery.finish(WeatherSession.configuration())
                    try await delivery.requestSubstitutes()
                }
            }
            .backgroundTask(.urlSession(PhotoUploads.sessionIdentifier)) {
                await Self.withStore {
                    let delivery = PhotoDelivery($0)
                    try await delivery.finish(PhotoUploads.configuration())
                    try await delivery.show()
                }
            }
            .backgroundTask(.processing(HeldUploads.identifier)) {
                await Self.withStore { try await HeldUploads(store: $0).run() }
            }
            .backgroundTask(.processing(WatchedFolders.identifier)) {
                await Self.withStore { try await WatchedFolders(store: $0).run() }
            }
            .backgroundTask(.urlSession(Downloads.sessionIdentifier)) {
                await Self.orAgain { try await DownloadDelivery().finish(Downloads.configuration()) }
            }
    }

    private static func withStore(_ body: (StormyStore) async throws -> Void) async {
        await orAgain { try await body(StormyStore.open()) }
    }

    /// Retries the launch if a result cannot be stored, and notifies the user. If the launch were completed without this result,
    /// the result would be lost.
    private static func orAgain(_ body: () async throws -> Void) async {
        do {
            try await body()
            StormyTrouble.isOver("store")
        } catch {
            let reason = StormyStoreError.words(for: error)
            StormyTrouble.show("store", "Stormy cannot work", reason)
            BGTaskScheduler.shared.abandonCurrentLaunch(reason)
        }
    }
}
