import BackgroundTasks
import BackgroundTransfer
import Foundation
import UserNotifications

/// Stormy as an app: what it does in the background. The command line is the tool's.
package struct StormyApp: App {
    private let responder: NotificationResponder

    package init() {
        responder = NotificationResponder()
        UNUserNotificationCenter.current().delegate = responder
        StormTeller.registerCategory()
    }

    package var body: some Scene {
        Worker()
            .backgroundTask(.appRefresh(NoonSchedule.identifier)) {
                await Self.withStore { await NoonCheck(store: $0, settings: .current).run() }
            }
            .backgroundTask(.urlSession(WeatherSession.identifier)) {
                await Self.withStore {
                    await HandedOverWeather(question: StormQuestion(store: $0, settings: .current)).finish(
                        WeatherSession.configuration())
                }
            }
            .backgroundTask(.urlSession(PhotoUploads.sessionIdentifier)) {
                await Self.withStore {
                    let delivery = PhotoDelivery($0)
                    await delivery.finish(PhotoUploads.configuration())
                    await delivery.tell()
                }
            }
            .backgroundTask(.processing(HeldUploads.identifier)) { await Self.withStore { await HeldUploads(store: $0).run() } }
            .backgroundTask(.urlSession(Downloads.sessionIdentifier)) {
                await DownloadDelivery().finish(Downloads.configuration())
            }
    }

    private static func withStore(_ body: (StormyStore) async -> Void) async {
        do {
            await body(try StormyStore.open())
        } catch {
            StormyTrouble.tell("store", "Stormy cannot work", "\(error)")
            BGTaskScheduler.shared.abandonCurrentLaunch("\(error)")
        }
    }
}
