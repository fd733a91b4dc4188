import BackgroundCommands
import BackgroundScenes
import Foundation

/// An app of another vendor, with a separate agent and a separate ledger. The app shows the tide every day at six, independently of Stormy.
struct TideApp: App {
    var body: some Scene {
        Worker { scheduleTide() }
            .backgroundTask(.appRefresh("TideMorning")) {
                scheduleTide()
                let content = UNMutableNotificationContent()
                content.title = "High tide today"
                content.body = "High tide is about 50 minutes later than yesterday."
                let day = Date().formatted(.iso8601.year().month().day())
                do {
                    try await UNUserNotificationCenter.current().add(
                        UNNotificationRequest(identifier: "tide-\(day)", content: content, trigger: nil))
                } catch {
                    BGTaskScheduler.shared.failCurrentLaunch("the tide could not be shown: \(error)")
                }
            }
            .backgroundTask(.notificationResponse) { response in
                // The user opened the notification, so the app removes the notification.
                UNUserNotificationCenter.current().removeDeliveredNotifications(withIdentifiers: [response.identifier])
            }
            .backgroundTask(.significantTimeChange) {
                // The delivered notifications are outdated when the day or the time zone has changed.
                UNUserNotificationCenter.current().removeAllDeliveredNotifications()
            }
    }
}

func scheduleTide() {
    let request = BGAppRefreshTaskRequest(identifier: "TideMorning")
    request.recurrence = .daily(WallClockTime(hour: 6, minute: 0)!)
    do { try BGTaskScheduler.shared.submit(request) } catch { print("not scheduled: \(error.localizedDescription)") }
}

@main
enum Tide {
    /// Schedules the daily task. Commands such as `tide-example background why` show the state of the task.
    static func main() {
        BackgroundCommands.runIfAsked()
        TideApp.main()
    }
}
