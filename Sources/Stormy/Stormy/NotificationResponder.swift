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
        do {
            let (store, settings) = (try StormyStore.open(), StormySettings.current)
            let earlier = try store.rememberedChoice(for: notification)
            guard let destination = await destination(of: earlier, settings) else { return }
            let files: [URL]
            if let earlier {
                files = earlier.files
            } else {
                guard let chosen = try await choose(for: notification, destination, store) else { return }
                files = chosen
            }
            let location = LocationDecision(option: nil, destination: destination, configuration: settings.keepsLocation)
            await add(files, .init(to: destination, location: location, storm: storm, tells: true), notification, store)
        } catch {
            let reason = StormyStoreError.words(for: error)
            // The user is notified only at the second repetition of the launch, because a fault often ends within seconds.
            if repetitions == 2 { await show("The photo cannot be added now", reason) }
            BGTaskScheduler.shared.abandonCurrentLaunch(reason)
        }
    }

    /// Returns the destination of the chosen files. If there is no destination, a notification shows the reason, and the result
    /// is `nil`.
    private func destination(of choice: RememberedChoice?, _ settings: StormySettings) async -> PhotoDestination? {
        let chosen = choice?.destination.map { settings.destination(for: $0) }
        if let destination = chosen ?? settings.destination { return destination }
        let text =
            settings.destinationTrouble
            ?? (chosen != nil
                ? "The destination of the chosen photos is not in the configuration any more."
                : settings.destinations.isEmpty
                    ? "Add an upload destination to the configuration first: `stormy upload FILE` shows how."
                    : "Choose the default upload destination in the configuration first: `stormy upload FILE` shows how.")
        if repetitions == 0 {
            await show(settings.destinationTrouble == nil ? "No upload destination" : "The photo cannot be added now", text)
        }
        // The agent launches the app again later, and delivers the user's response again.
        if settings.destinationTrouble != nil || choice != nil { BGTaskScheduler.shared.abandonCurrentLaunch(text) }
        return nil
    }

    /// Queues the chosen files. If the cause of a failure may be temporary, the files are added again until the launch's time is
    /// up, and in later launches.
    private func add(
        _ chosen: [URL], _ order: PhotoUploads.BatchOptions, _ notification: String, _ store: StormyStore
    ) async {
        let uploads = PhotoUploads(store: store)
        var (files, report) = (chosen, ChoiceReport())
        repeat {
            report.waiting = []
            for (index, file) in files.enumerated() {
                add(file, order, uploads, &report)
                let rest = Array(files[(index + 1)...])
                // If the list of the remaining files cannot be stored, the next launch adds all chosen files again.
                try? store.rememberChoice(
                    report.failed + report.waiting.map(\.file) + rest, to: order.destination, for: notification)
                if Task.isCancelled, !rest.isEmpty { return await showWaiting(report) }
            }
            files = report.waiting.map(\.file)
            if !files.isEmpty { try? await Task.sleep(for: .seconds(1)) }
        } while !files.isEmpty && !Task.isCancelled
        if !files.isEmpty, repetitions < Self.lastRepetition { return await showWaiting(report) }
        report.endWaiting()
        for (title, sentences) in report.notifications {
            sentences.forEach { logError("\(title): \($0)") }
            await logging(title) { try await ActionNotification.show(title, sentences: sentences) }
        }
        try? store.rememberChoice([], to: order.destination, for: notification)
    }

    /// Shows a notification about the files that wait for another launch. The notification is shown once for each choice.
    private func showWaiting(_ report: ChoiceReport) async {
        guard repetitions == 0, !report.waiting.isEmpty else { return }
        let (title, sentences) = report.waitingNotification
        await logging(title) { try await ActionNotification.show(title, sentences: sentences) }
    }

    /// The number of repeated launches after which the files that still wait are reported as not queued.
    private static let lastRepetition = 11

    private var repetitions: Int { LaunchContext.current?.repetitions ?? Self.lastRepetition }

    /// The chosen files that were not queued.
    private struct ChoiceReport {
        /// The files that cannot be queued at all.
        var failed: [URL] = []
        /// The files that are added again later, with the reasons.
        var waiting: [(file: URL, reason: String)] = []
        private var sentences: [Kind: [String]] = [:]

        enum Kind: CaseIterable {
            case notQueued, heldBack, alreadyUploaded, alreadyQueued

            func title(_ count: Int) -> String {
                switch self {
                case .notQueued: count == 1 ? "Photo not queued" : "\(count) photos not queued"
                case .heldBack: count == 1 ? "Photo held back" : "\(count) photos held back"
                case .alreadyUploaded: count == 1 ? "Photo is already uploaded" : "\(count) photos are already uploaded"
                case .alreadyQueued: count == 1 ? "Photo is already queued" : "\(count) photos are already queued"
                }
            }
        }

        mutating func add(_ kind: Kind, _ sentence: String) { sentences[kind, default: []].append(sentence) }

        mutating func fail(_ file: URL, _ reason: String) {
            failed.append(file)
            add(.notQueued, "\(file.lastPathComponent): \(reason)")
        }

        /// Marks the files that are still waiting as failed.
        mutating func endWaiting() {
            for (file, reason) in waiting { fail(file, reason) }
            waiting = []
        }

        var waitingNotification: (title: String, sentences: [String]) {
            let title = waiting.count == 1 ? "Photo waits" : "\(waiting.count) photos wait"
            return (title, waiting.map { "\($0.file.lastPathComponent) is not queued yet: \($0.reason)" })
        }

        /// The notifications, one for each kind of result. A notification has a title and sentences.
        var notifications: [(title: String, sentences: [String])] {
            Kind.allCases.compactMap { kind in sentences[kind].map { (kind.title($0.count), $0) } }
        }
    }

    /// Lets the user choose files. Returns `nil` if nothing was chosen.
    private func choose(
        for notification: String, _ destination: PhotoDestination, _ store: StormyStore
    ) async throws -> [URL]? {
        // This launch closes the file chooser of an earlier launch. If the earlier launch was killed, no process would receive
        // the files that the user chooses in its window.
        if let chooser = try store.openChooser(for: notification), ProcessIdentity(pid: chooser.pid) == chooser {
            kill(chooser.pid, SIGTERM)
        }
        defer { try? store.setOpenChooser(nil, for: notification) }
        do {
            let paths = try await PhotoChoice.choosePhotos { try? store.setOpenChooser($0, for: notification) }
            guard let files = paths?.map({ URL(fileURLWithPath: $0) }) else { return nil }
            // This launch tries again to store the list, because another process may be writing to the store. If the list is not
            // stored, the user has to choose again in the next launch.
            while !Task.isCancelled {
                do {
                    try store.rememberChoice(files, to: destination, for: notification)
                    break
                } catch {
                    try? await Task.sleep(for: .seconds(1))
                }
            }
            return files
        } catch let failure as PhotoChoice.Failure {
            await show("Add a photo", failure.description)
            return nil
        }
    }

    /// Queues a photo. A file that cannot be read does not prevent the other files from being added.
    private func add(_ file: URL, _ order: PhotoUploads.BatchOptions, _ uploads: PhotoUploads, _ report: inout ChoiceReport) {
        let name = file.lastPathComponent
        do {
            switch try uploads.add(file, order) {
            case .held(_, let reason): report.add(.heldBack, "\(name): \(reason)")
            case .known(_, _, .some): report.add(.alreadyUploaded, name)
            case .known(_, let transfer, nil):
                // If the user paused the upload, adding the photo again resumes the upload.
                if let transfer { try BackgroundTransfers.unpause([transfer]) }
                report.add(.alreadyQueued, name)
            case .queued: break
            }
        } catch {
            let reason = StormyStoreError.words(for: error)
            if Self.isFinal(error, file) { report.fail(file, reason) } else { report.waiting.append((file, reason)) }
        }
    }

    /// Returns whether an error is permanent. An unreadable file and a store that another process is writing are temporary
    /// errors.
    private static func isFinal(_ error: any Error, _ file: URL) -> Bool {
        switch PathStatus.at(file.path) {
        case .absent: return true
        case .found(let information) where information.st_mode & S_IFMT != S_IFREG: return true
        default: break
        }
        return switch error {
        case PhotoUploadError.addressIsTaken, PhotoUploadError.isOwnFile, PhotoUploadError.isNoPhoto: true
        default: false
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
        await show(request.content.title, request.content.body + "\nRun in a terminal: stormy check")
    }

    private func showAgain(_ request: UNNotificationRequest, after seconds: Double) async {
        guard let content = request.content.mutableCopy() as? UNMutableNotificationContent else { return }
        // If the file of a picture does not exist any more, the notification is shown without this picture.
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

    /// Logs an error on standard error. The agent copies the app's standard error to the agent's log.
    private func logging(_ title: String, _ body: () async throws -> Void) async {
        do { try await body() } catch { logError("the notification \"\(title)\" cannot be shown: \(error)") }
    }
}

extension StormyStore {
    /// Returns the files that the user chose for a notification and that are not queued yet, and their destination.
    fileprivate func rememberedChoice(for notification: String) throws -> RememberedChoice? {
        guard let data = try setting("chosen \(notification)").map({ Data($0.utf8) }) else { return nil }
        let decoder = JSONDecoder()
        if let choice = try? decoder.decode(RememberedChoice.self, from: data) { return choice }
        // Earlier versions stored only the files, without the destination.
        return (try? decoder.decode([URL].self, from: data)).map { RememberedChoice(files: $0, destination: nil) }
    }

    /// Returns the process of the file chooser that a launch for this notification opened. `nil` if the launch has recorded that
    /// the chooser was closed.
    fileprivate func openChooser(for notification: String) throws -> ProcessIdentity? {
        let numbers = try setting("chooser \(notification)")?.split(separator: " ").compactMap { Int64($0) } ?? []
        return numbers.count == 2 ? ProcessIdentity(pid: Int32(truncatingIfNeeded: numbers[0]), start: numbers[1]) : nil
    }

    fileprivate func setOpenChooser(_ chooser: ProcessIdentity?, for notification: String) throws {
        guard let chooser else { return try removeSetting("chooser \(notification)") }
        try set("chooser \(notification)", "\(chooser.pid) \(chooser.start)")
    }

    fileprivate func rememberChoice(_ files: [URL], to destination: PhotoDestination, for notification: String) throws {
        guard !files.isEmpty else { return try removeSetting("chosen \(notification)") }
        let choice = RememberedChoice(files: files, destination: destination.identity)
        try set("chosen \(notification)", String(decoding: JSONEncoder().encode(choice), as: UTF8.self))
    }
}

/// The chosen files that are not queued yet. Another launch queues these files.
private struct RememberedChoice: Codable {
    var files: [URL]
    /// The identity of the destination at the time of the choice.
    var destination: String?
}
