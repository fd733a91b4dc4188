import BackgroundTasks
import BackgroundRuntime
import BackgroundTransfer
import Foundation
import ProcessSupport
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
        let settings = StormySettings.current
        guard let destination = settings.destination else {
            let way = "`stormy upload FILE` shows how."
            let missing =
                settings.destinations.isEmpty
                ? ("No upload destination", "Add an upload destination to the configuration first: \(way)")
                : ("No upload destination", "Choose the default upload destination in the configuration first: \(way)")
            let (title, text) = settings.destinationTrouble.map { ("The photo cannot be added now", $0) } ?? missing
            await show(title, text)
            let hasChosen = (try? StormyStore.open().rememberedChoice(for: notification)) ?? nil
            // The response is delivered again later.
            if settings.destinationTrouble != nil || hasChosen != nil { BGTaskScheduler.shared.abandonCurrentLaunch(text) }
            return
        }
        do {
            let store = try StormyStore.open()
            guard let files = try await choice(for: notification, store) else { return }
            let location = LocationDecision(option: nil, destination: destination, configuration: settings.keepsLocation)
            let order = PhotoUploads.BatchOptions(to: destination, location: location, storm: storm, tells: true)
            var report = ChoiceReport()
            for (index, file) in files.enumerated() {
                add(file, order, store, &report)
                let rest = Array(files[(index + 1)...])
                // The next launch tries the failed files again. Without the list it tries all files again.
                try? store.rememberChoice(report.failed + rest, for: notification)
                if Task.isCancelled, !rest.isEmpty { return }
            }
            for (title, sentences) in report.notifications {
                sentences.forEach { logError("\(title): \($0)") }
                await logging(title) { try await ActionNotification.show(title, sentences: sentences) }
            }
            try store.rememberChoice([], for: notification)
        } catch {
            await show("Photo not queued", StormyStoreError.words(for: error))
        }
    }

    /// The chosen files that were not queued.
    private struct ChoiceReport {
        var failed: [URL] = []
        private var sentences: [(one: String, many: String, sentence: String)] = []

        mutating func add(_ one: String, _ many: String, _ sentence: String) { sentences.append((one, many, sentence)) }

        /// One notification for each kind of result: its title and its sentences.
        var notifications: [(title: String, sentences: [String])] {
            let kinds = sentences.map(\.one).reduce(into: [String]()) { if !$0.contains($1) { $0.append($1) } }
            return kinds.map { kind in
                let all = sentences.filter { $0.one == kind }
                return (all.count == 1 ? kind : "\(all.count) \(all[0].many)", all.map(\.sentence))
            }
        }
    }

    /// Returns the files that the user chose. The choice may be from a launch that ran out of time while copying. `nil` if nothing was
    /// chosen.
    private func choice(for notification: String, _ store: StormyStore) async throws -> [URL]? {
        if let files = try store.rememberedChoice(for: notification) { return files }
        // A choice in the window of a process that was killed would be lost.
        if let chooser = try store.openChooser(for: notification), chooser.isAlive { kill(chooser.pid, SIGTERM) }
        defer { try? store.setOpenChooser(nil, for: notification) }
        do {
            let paths = try await PhotoChoice.choosePhotos { try? store.setOpenChooser($0, for: notification) }
            guard let files = paths?.map({ URL(fileURLWithPath: $0) }) else { return nil }
            // Without the list, a launch that runs out of time asks the user again.
            try? store.rememberChoice(files, for: notification)
            return files
        } catch let failure as PhotoChoice.Failure {
            await show("Add a photo", failure.description)
            return nil
        }
    }

    private func add(_ file: URL, _ order: PhotoUploads.BatchOptions, _ store: StormyStore, _ report: inout ChoiceReport) {
        let name = file.lastPathComponent
        // A file that cannot be read does not prevent the other files from being added.
        do {
            switch try PhotoUploads(store: store).add(file, order) {
            case .held(_, let reason): report.add("Photo held back", "photos held back", "\(name): \(reason)")
            case .known(_, _, .some): report.add("Photo is already uploaded", "photos are already uploaded", name)
            case .known(_, let transfer, nil):
                // If the user paused the upload, adding the photo again resumes it.
                if let transfer { try BackgroundTransfers.unpause([transfer]) }
                report.add("Photo is already queued", "photos are already queued", name)
            case .queued: break
            }
        } catch {
            report.failed.append(file)
            report.add("Photo not queued", "photos not queued", "\(name): \(StormyStoreError.words(for: error))")
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

    /// The chooser that a launch for this notification opened, if the launch did not see its end.
    fileprivate func openChooser(for notification: String) throws -> ProcessIdentity? {
        let numbers = try setting("chooser \(notification)")?.split(separator: " ").compactMap { Int64($0) } ?? []
        return numbers.count == 2 ? ProcessIdentity(pid: Int32(truncatingIfNeeded: numbers[0]), start: numbers[1]) : nil
    }

    fileprivate func setOpenChooser(_ chooser: ProcessIdentity?, for notification: String) throws {
        guard let chooser else { return try removeSetting("chooser \(notification)") }
        try set("chooser \(notification)", "\(chooser.pid) \(chooser.start)")
    }

    fileprivate func rememberChoice(_ files: [URL], for notification: String) throws {
        guard !files.isEmpty else { return try removeSetting("chosen \(notification)") }
        try set("chosen \(notification)", String(decoding: JSONEncoder().encode(files), as: UTF8.self))
    }
}
