import BackgroundRuntime
import BackgroundTasks
import Foundation
import ProcessSupport
import Spool
import UserNotifications

/// Uploads the new photos of the folders that the user chose (`stormy watch`).
///
/// The agent launches the app when a folder changes, and once a day. Each launch compares the files with the recorded photos, so a
/// photo is found also if a change was not reported.
package struct WatchedFolders: Sendable {
    package static let identifier = "StormyFolders"

    /// The number of seconds without a change after which a file counts as complete.
    private static let settleTime = 10.0
    /// The number of photos that are copied before they are queued in one commit.
    private static let batchSize = 100

    let store: StormyStore
    let settings: StormySettings

    package init(store: StormyStore, settings: StormySettings = .current) { (self.store, self.settings) = (store, settings) }

    package enum Failure: Error, CustomStringConvertible {
        case isWatched(String)
        case cannotRead(String)

        package var description: String {
            switch self {
            case .isWatched(let path): "\(path) is already watched"
            case .cannotRead(let path): "\(path): the folder cannot be read"
            }
        }
    }

    // MARK: The list of folders

    /// Adds a folder.
    ///
    /// - Parameter includesExisting: `true` to upload the photos that are in the folder now.
    package func add(
        _ path: String, to destination: String, isRecursive: Bool, isForLater: Bool, includesExisting: Bool
    ) throws -> PhotoFolderRecord {
        let (files, _, code) = FolderFiles.list(path, isRecursive: isRecursive)
        if code != 0 { throw Failure.cannotRead(path) }
        if let known = try store.folderWatches().first(where: { $0.path == path && $0.destination == destination }) {
            guard try !areOn else { throw Failure.isWatched(path) }
            // The folders inside the folder were not in the baseline of a folder that was not recursive.
            let deeper = files.filter { !known.isRecursive && URL(exactPath: $0.path).deletingLastPathComponent().path != path }
            var watch = known
            (watch.isRecursive, watch.isForLater) = (isRecursive, isForLater)
            try store.changeFolderWatch(
                watch, ignoring: includesExisting ? nil : deeper.map { ($0.path, $0.version) })
            try turnOn()
            return watch
        }
        let watch = try store.addFolderWatch(
            PhotoFolderRecord(
                path: path, destination: destination, isRecursive: isRecursive, isForLater: isForLater,
                createdAt: BGTaskScheduler.now),
            ignoring: includesExisting ? [] : files.map { ($0.path, $0.version) })
        do { try turnOn() } catch {
            if let id = watch.id { try store.removeFolderWatch(id) }
            throw error
        }
        return watch
    }

    package func remove(_ watch: PhotoFolderRecord) throws {
        if let id = watch.id { try store.removeFolderWatch(id) }
        if try areOn { try submit() }
    }

    private static let off = "foldersAreOff"

    /// `false` after the command `quit`. The folders stay in the list, and are not watched.
    package var areOn: Bool { get throws { try store.setting(Self.off) == nil } }

    /// Records that the folders are not watched. The caller removes the request.
    package static func turnOff(in store: StormyStore) throws { try store.set(off, "1") }

    private func turnOn() throws {
        try store.removeSetting(Self.off)
        try submit()
    }

    /// Submits the request for the current folders. Without folders, the request is removed.
    func submit() throws {
        let watches = try store.folderWatches()
        guard !watches.isEmpty, let time = WallClockTime(hour: 4, minute: 0) else {
            return try BGTaskScheduler.shared.removeTaskRequest(withIdentifier: Self.identifier)
        }
        let request = BGProcessingTaskRequest(identifier: Self.identifier)
        request.recurrence = .daily(time)
        request.runsInLowPowerMode = true
        request.watchedFolders = watches.map {
            BGWatchedFolder(URL(fileURLWithPath: $0.path, isDirectory: true), isRecursive: $0.isRecursive)
        }
        try BGTaskScheduler.shared.submit(request)
    }

    /// Submits the request again if the ledger does not contain it, for example because the ledger was removed.
    ///
    /// - Returns: `true` if the request was missing.
    package func restoreIfLost() throws -> Bool {
        guard try areOn, try !store.folderWatches().isEmpty,
            try BGTaskScheduler.shared.pendingTaskRequest(withIdentifier: Self.identifier) == nil
        else { return false }
        try submit()
        return true
    }

    // MARK: The launch

    /// What a launch did.
    private struct Tally {
        var queued = 0
        var troubles: [String] = []
        /// `true` if photos could not be copied, for example because the disk is full.
        var lacksRoom = false
    }

    /// Queues the new photos of all folders.
    func run() async throws {
        var tally = Tally()
        for watch in try store.folderWatches() {
            guard let destination = settings.destinations.first(where: { $0.name == watch.destination }) else {
                tally.troubles.append("\(watch.path): \(watch.destination) is not configured")
                continue
            }
            try await scan(watch, destination, &tally)
        }
        report(tally)
        guard !Task.isCancelled else {
            return BGTaskScheduler.shared.abandonCurrentLaunch("the time was up before all photos were queued")
        }
        // The launch is repeated after growing pauses.
        if tally.lacksRoom { BGTaskScheduler.shared.abandonCurrentLaunch(tally.troubles.last ?? "photos could not be copied") }
    }

    private func scan(_ watch: PhotoFolderRecord, _ destination: PhotoDestination, _ tally: inout Tally) async throws {
        let files = Dictionary(grouping: try newFiles(watch, destination, &tally), by: isSettled)
        var seen = Dictionary((files[false] ?? []).map { ($0.path, $0.version) }) { one, _ in one }
        let waiting = try await queue(files[true] ?? [], watch, destination, &seen, &tally)
        // Files that are still changing are examined again. If they change longer, the agent reports the next change.
        let unsettled = (files[false] ?? []) + waiting
        guard !unsettled.isEmpty, !Task.isCancelled else { return }
        await AppRuntime.ofWork.pause(for: Self.settleTime, isIdle: true)
        let settled = unsettled.filter { FolderFiles.entry($0.path)?.version == $0.version }
        _ = try await queue(settled, watch, destination, &seen, &tally)
    }

    /// Returns whether a file is unchanged for some seconds. If the time of the file is in the future, the clock was set back, and
    /// the file is examined twice.
    private func isSettled(_ file: FolderFiles.Entry) -> Bool {
        BGTaskScheduler.now.timeIntervalSince(file.changedAt) >= Self.settleTime
    }

    /// Returns the files that were not examined before in their current version, or whose photo has no record for the destination.
    private func newFiles(
        _ watch: PhotoFolderRecord, _ destination: PhotoDestination, _ tally: inout Tally
    ) throws -> [FolderFiles.Entry] {
        let (files, troubles, _) = FolderFiles.list(watch.path, isRecursive: watch.isRecursive)
        tally.troubles += troubles
        let known = try KnownUploads(store, destination, Set(settings.destinations.map(\.name)))
        return try store.newFiles(among: files, of: watch, hasRecord: known.hasRecord)
    }

    /// - Parameter seen: The versions of the companions that may be changing. A companion with the same version in a later call
    ///   is complete.
    /// - Returns: The files that were not queued, because a file that belongs to them may be changing.
    private func queue(
        _ files: [FolderFiles.Entry], _ watch: PhotoFolderRecord, _ destination: PhotoDestination,
        _ seen: inout [String: PhotoOriginal.Version], _ tally: inout Tally
    ) async throws -> [FolderFiles.Entry] {
        let uploads = PhotoUploads(store: store)
        let order = PhotoUploads.BatchOptions(
            to: destination,
            location: LocationDecision(option: nil, destination: destination, configuration: settings.keepsLocation),
            tells: true, isHeld: watch.isForLater)
        var companions = PhotoCompanions(destination, order.location)
        var unsettled: Set<String> = []
        for start in stride(from: 0, to: files.count, by: Self.batchSize) {
            if Task.isCancelled { break }
            let batch = files[start..<min(start + Self.batchSize, files.count)]
            var (found, others): ([PhotoFile], [PhotoOriginal]) = ([], [])
            for file in batch {
                switch PhotoFormat.detect(at: URL(exactPath: file.path)) {
                case .photo: found.append(PhotoFile(path: file.path, isKnownPhotoOnly: true))
                // The video of a photo that was uploaded before.
                case .other where companions.photo(ofVideo: file.path) != nil:
                    found.append(PhotoFile(path: file.path, isKnownPhotoOnly: false))
                case .other: others.append(PhotoOriginal(other: file.path, file.version))
                case .unreadable(let code):
                    if !FileFault(code).isAbsence { tally.troubles.append("\(file.path): \(String(cString: strerror(code)))") }
                }
            }
            try store.record(others, now: BGTaskScheduler.now)
            let photos = companions.groups(of: found).filter { group in
                // A program may still be writing the video.
                if let refusal = group.first?.refusal, FolderFiles.entry(refusal.video).map(isSettled) == false {
                    unsettled.formUnion(group.map(\.path))
                    return false
                }
                let changing = group.dropFirst().filter { companion in
                    guard let entry = FolderFiles.entry(companion.path), !isSettled(entry) else { return false }
                    defer { seen[entry.path] = entry.version }
                    return seen[entry.path] != entry.version
                }
                if !changing.isEmpty { unsettled.formUnion(group.map(\.path)) }
                return changing.isEmpty
            }.flatMap { $0 }
            if photos.isEmpty { continue }
            if watch.isForLater { try HeldUploads.submit() }
            var prepared: [PhotoUploads.Prepared] = []
            for (file, result) in zip(photos, uploads.prepare(photos, order)) {
                do { prepared.append(try result.get()) } catch {
                    tally.troubles.append(trouble(error, file.path))
                    if (error as? Snapshot.Failure)?.isOfCopy == true { tally.lacksRoom = true }
                }
            }
            for (photo, result) in zip(prepared, try uploads.queue(prepared, order)) {
                do {
                    switch try result.get() {
                    case .queued: if photo.role == .photo { tally.queued += 1 }
                    case .held(_, let reason): tally.troubles.append("\(photo.path): held back: \(reason)")
                    case .known: break
                    }
                } catch { tally.troubles.append(trouble(error, photo.path)) }
            }
        }
        return files.filter { unsettled.contains($0.path) }
    }

    private func trouble(_ error: any Error, _ path: String) -> String {
        let text = "\(error)"
        return text.contains(path) ? text : "\(path): \(text)"
    }

    private func report(_ tally: Tally) {
        var parts = tally.queued > 0 ? ["\(PhotoRecord.count(tally.queued)) queued"] : []
        if !tally.troubles.isEmpty { parts.append("\(PhotoRecord.count(tally.troubles.count)) not queued") }
        if !parts.isEmpty { BGTaskScheduler.shared.describeCurrentLaunch(parts.joined(separator: "; ")) }
        guard !tally.troubles.isEmpty else { return StormyTrouble.isOver("folders") }
        let rest = tally.troubles.count > 3 ? "\nand \(tally.troubles.count - 3) more" : ""
        StormyTrouble.show(
            "folders", "Photos of a folder are not uploaded", tally.troubles.prefix(3).joined(separator: "\n") + rest)
    }
}
