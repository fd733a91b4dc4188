import BackgroundTasks
import Foundation
import UserNotifications

func scheduleTide() {
    let request = BGAppRefreshTaskRequest(identifier: "TideMorning")
    request.recurrence = .daily(WallClockTime(hour: 6, minute: 0)!)
    do { try BGTaskScheduler.shared.submit(request) } catch { print("not scheduled: \(error.localizedDescription)") }
}

func notifyOfTide() async {
    let content = UNMutableNotificationContent()
    content.title = "High tide today"
    do {
        try await UNUserNotificationCenter.current().add(
            UNNotificationRequest(identifier: "tide", content: content, trigger: nil))
    } catch {
        BGTaskScheduler.shared.failCurrentLaunch("the tide could not be shown:  \(error)")
    }
}
