import BackgroundTasks
import BackgroundRuntime
import BackgroundTransfer
import Foundation
import UserNotifications

/// Performs the actions that a user selects on a notification.
final class NotificationResponder: UNUserNotificationCenterDelegate, Sendable {
    func userNotificationCenter(_ center: UNUserNotificationCenter, didReceive response: UNNotificationResponse) async {
        let storm = StormNotifier.number(ofStormIn: response.notification.request.content.userInfo)
        switch response.actionIdentifier {
        case "photo": await addPhoto(storm: storm, from: response.notification.request.identifier)
        case "snooze": await showAgain(response.notification.request, after: 3600)
        case UNNotificationDefaultActionIdentifier, "details": await explain(response.notification.request)
        default: return
        }
    }

    private func addPhoto(storm: Int64?, from notification: String) async {
        guard let destination = StormySettings.current.destination else {
            if let trouble = StormySettings.current.destinationTrouble {
                // The response is delivered again later.
                await show("The photo cannot be added now", trouble)
                return BGTaskScheduler.shared.abandonCurrentLaunch(trouble)
            }
            let way =
                StormySettings.current.destinations.isEmpty
                ? "Add an upload destination to the configuration first"
                : "Choose the default upload destination in the configuration first"
            return await show("No place to upload to", "\(way): `stormy upload FILE` shows how.")
        }
        do {
            let store = try StormyStore.open()
            guard let files = try await choice(for: notification, store) else { return }
            let location = LocationDecision(
                option: nil, destination: destination, configuration: StormySettings.current.keepsLocation)
            let order = PhotoUploads.BatchOptions(to: destination, location: location, storm: storm, tells: true)
            for (index, file) in files.enumerated() {
                await add(file, order, store)
                try store.rememberChoice(Array(files[(index + 1)...]), for: notification)
                // The next launch continues with the remaining files.
                if Task.isCancelled { return }
            }
        } catch {
            await show("Photo not queued", StormyStoreError.words(for: error))
        }
    }

    /// Returns the files that the user chose. The choice may be from a launch that ran out of time while copying. `nil` if nothing was
    /// chosen.
    private func choice(for notification: String, _ store: StormyStore) async throws -> [URL]? {
        if let files = try store.rememberedChoice(for: notification) { return files }
        do {
            guard let files = try await PhotoChoice.choosePhotos()?.map({ URL(fileURLWithPath: $0) }) else { return nil }
            try store.rememberChoice(files, for: notification)
            return files
        } catch let failure as PhotoChoice.Failure {
            await show("Add a photo", failure.description)
            return nil
        }
    }

    private func add(_ file: URL, _ order: PhotoUploads.BatchOptions, _ store: StormyStore) async {
        // A file that cannot be read does not prevent the other files from being added.
        do {
            switch try PhotoUploads(store: store).add(file, order) {
            case .held(_, let reason): await show("Photo held back", "\(file.lastPathComponent): \(reason)")
            case .known(_, _, .some): await show("Photo is already uploaded", file.lastPathComponent)
            case .known(_, let transfer, nil):
                // If the user paused the upload, adding the photo again resumes it.
                if let transfer { try BackgroundTransfers.unpause([transfer]) }
                await show("Photo is already queued", file.lastPathComponent)
            case .queued: break
            }
        } catch {
            await show("Photo not queued", "\(file.lastPathComponent): \(StormyStoreError.words(for: error))")
        }
    }

    /// Opens the report page. Shows the text as a notification if the page cannot be opened.
    private func explain(_ request: UNNotificationRequest) async {
        let path = AppManifest.executableURL.path
        let trouble = await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                continuation.resume(returning: CompanionProgram.trouble(starting: path, ["report", "--open"]))
            }
        }
        guard let trouble else { return }
        logError("the report cannot be opened: \(trouble)")
        await show(request.content.title, request.content.body + "\nIn a terminal: stormy check")
    }

    private func showAgain(_ request: UNNotificationRequest, after seconds: Double) async {
        guard let content = request.content.mutableCopy() as? UNMutableNotificationContent else { return }
        // A notification without its picture is better than no notification.
        content.attachments = content.attachments.filter { FileManager.default.fileExists(atPath: $0.url.path) }
        // A notification that is snoozed again keeps its identifier.
        let suffix = request.identifier.hasSuffix(StormNotifier.snoozed) ? "" : StormNotifier.snoozed
        await show(
            UNNotificationRequest(
                identifier: request.identifier + suffix, content: content,
                trigger: UNTimeIntervalNotificationTrigger(timeInterval: seconds, repeats: false)))
    }

    private func show(_ title: String, _ body: String) async {
        await logging(title) { try await ActionNotification.show(title, body) }
    }

    private func show(_ request: UNNotificationRequest) async {
        await logging(request.content.title) { try await UNUserNotificationCenter.current().add(request) }
    }

    /// Logs an error on standard error. The agent copies standard error to its log.
    private func logging(_ title: String, _ body: () async throws -> Void) async {
        do { try await body() } catch { logError("\(title): cannot be shown: \(error)") }
    }
}

extension StormyStore {
    /// Returns the files that the user chose at a notification and that are not queued yet.
    fileprivate func rememberedChoice(for notification: String) throws -> [URL]? {
        try setting("chosen \(notification)").flatMap { try? JSONDecoder().decode([URL].self, from: Data($0.utf8)) }
    }

    fileprivate func rememberChoice(_ files: [URL], for notification: String) throws {
        guard !files.isEmpty else { return try removeSetting("chosen \(notification)") }
        try set("chosen \(notification)", String(decoding: JSONEncoder().encode(files), as: UTF8.self))
    }
}
