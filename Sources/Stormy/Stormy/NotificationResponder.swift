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
            for file in files {
                let order = PhotoUploads.BatchOptions(
                    to: destination, keepsLocation: StormySettings.current.keepsLocation, storm: storm, tells: true)
                // One that cannot be read, say, keeps none of the others back.
                do {
                    switch try PhotoUploads(store: StormyStore.open()).add(file, order) {
                    case .held(_, let reason): await say("Photo held back", "\(file.lastPathComponent): \(reason)")
                    case .known: await say("Photo is there already", file.lastPathComponent)
                    case .queued: break
                    }
                } catch {
                    await say("Photo not queued", "\(file.lastPathComponent): \(StormyStoreError.words(for: error))")
                }
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
        // Two at once are two.
        await show(UNNotificationRequest(identifier: "note-\(UUID().uuidString)", content: content, trigger: nil))
    }

    /// What fails is said on standard error; the agent keeps that in its log.
    private func show(_ request: UNNotificationRequest) async {
        do { try await UNUserNotificationCenter.current().add(request) } catch {
            logError("\(request.content.title): cannot be shown: \(error)")
        }
    }
}
