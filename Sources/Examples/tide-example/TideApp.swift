import BackgroundCommands
import BackgroundScenes
import Foundation

/// Somebody else's app: told of the tide every day at six, beside Stormy, with an agent and a ledger of its own.
struct TideApp: App {
    var body: some Scene {
        Worker { scheduleTide() }
            .backgroundTask(.appRefresh("TideMorning")) {
                scheduleTide()
                let content = UNMutableNotificationContent()
                content.title = "High tide today"
                content.body = "The moon is where it was yesterday, give or take."
                let day = Date().formatted(.iso8601.year().month().day())
                do {
                    try await UNUserNotificationCenter.current().add(
                        UNNotificationRequest(identifier: "tide-\(day)", content: content, trigger: nil))
                } catch {
                    BGTaskScheduler.shared.failCurrentLaunch("the tide could not be told: \(error)")
                }
            }
            .backgroundTask(.notificationResponse) { response in
                // Read is read.
                UNUserNotificationCenter.current().removeDeliveredNotifications(withIdentifiers: [response.identifier])
            }
            .backgroundTask(.significantTimeChange) {
                // Yesterday's tide, or that of another coast.
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
    /// `tide-example` schedules; `tide-example background why` and its like ask about it.
    static func main() {
        BackgroundCommands.runIfAsked()
        TideApp.main()
    }
}
