import Foundation
import UserNotifications

/// What a person's press on a notification does.
final class NotificationResponder: UNUserNotificationCenterDelegate, Sendable {
    func userNotificationCenter(_ center: UNUserNotificationCenter, didReceive response: UNNotificationResponse) async {
        let info = response.notification.request.content.userInfo
        let storm = (info["storm"] as? NSNumber)?.int64Value ?? (info["storm"] as? Int).map(Int64.init)
        switch response.actionIdentifier {
        case "photo": await addPhoto(storm: storm)
        case "snooze": await showAgain(response.notification.request, after: 3600)
        case UNNotificationDefaultActionIdentifier, "details": await explain(response.notification.request)
        default: return
        }
    }

    private func addPhoto(storm: Int64?) async {
        guard let destination = StormySettings.current.destination else {
            return await say(
                "No place to upload to", "Add an upload destination to the configuration first: `stormy upload` says how.")
        }
        switch await FileChooser.choosePhotos() {
        case .cancelled: return
        case .unavailable:
            await say("Add a photo", "No file chooser is installed. In a terminal: stormy upload FILE")
        case .chosen(let files):
            do {
                let uploads = PhotoUploads(store: try StormyStore.open())
                for file in files {
                    let order = PhotoUploads.BatchOptions(
                        to: destination, keepsLocation: StormySettings.current.keepsLocation, storm: storm, tells: true)
                    let result = try uploads.add(file, order)
                    switch result {
                    case .held(_, let reason): await say("Photo held back", "\(file.lastPathComponent): \(reason)")
                    case .known: await say("Photo is there already", file.lastPathComponent)
                    case .queued: break
                    }
                }
            } catch {
                await say("Photo not queued", "\(error)")
            }
        }
    }

    private func explain(_ request: UNNotificationRequest) async {
        await say(request.content.title, request.content.body + "\nIn a terminal: stormy check")
    }

    private func showAgain(_ request: UNNotificationRequest, after seconds: Double) async {
        await show(
            UNNotificationRequest(
                identifier: request.identifier + "-snoozed", content: request.content,
                trigger: UNTimeIntervalNotificationTrigger(timeInterval: seconds, repeats: false)))
    }

    private func say(_ title: String, _ body: String) async {
        let content = UNMutableNotificationContent()
        content.title = title
        content.body = body
        let identifier = "note-\(title)-\(Int(Date().timeIntervalSince1970))"
        await show(
            UNNotificationRequest(identifier: identifier, content: content, trigger: nil))
    }
}
