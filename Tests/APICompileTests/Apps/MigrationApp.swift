// Moves a photo library into a new layout. The user starts the migration, and the system shows its progress. The code was written
// for iOS 26, and only its imports were changed.
import BackgroundTasks

struct LibraryAlbum: Sendable, Equatable {
    let name: String
    let files: [URL]
}

/// Moves one album at a time.
protocol AlbumMoving: Sendable {
    func move(_ album: LibraryAlbum) async throws
}

struct FolderMover: AlbumMoving {
    let destination: URL

    func move(_ album: LibraryAlbum) async throws {
        let folder = destination.appending(path: album.name, directoryHint: .isDirectory)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        for file in album.files {
            try Task.checkCancellation()
            try FileManager.default.moveItem(at: file, to: folder.appending(component: file.lastPathComponent))
        }
    }
}

@MainActor
final class LibraryMigrator {
    enum Status: Equatable { case idle, running, paused(done: Int), finished, unavailable(String) }

    static let identifierPrefix = "com.example.photos.migration"

    private let mover: any AlbumMoving
    private var remaining: [LibraryAlbum]
    private(set) var status = Status.idle
    private var isExpired = false

    init(albums: [LibraryAlbum], mover: any AlbumMoving) {
        remaining = albums
        self.mover = mover
    }

    /// Called when the user taps the button.
    func startMigration() {
        let identifier = "\(Self.identifierPrefix).\(UUID().uuidString)"
        let request = BGContinuedProcessingTaskRequest(
            identifier: identifier, title: "Moving Your Library", subtitle: "About to start…")
        request.strategy = .fail
        if BGTaskScheduler.supportedResources.contains(.gpu) {
            request.requiredResources = .gpu
        }

        // Launch handlers of continued processing are registered when they are needed.
        BGTaskScheduler.shared.register(forTaskWithIdentifier: identifier, using: .main) { [weak self] task in
            guard let task = task as? BGContinuedProcessingTask else { return }
            MainActor.assumeIsolated { self?.run(task) }
        }

        do {
            try BGTaskScheduler.shared.submit(request)
        } catch BGTaskScheduler.Error.immediateRunIneligible {
            status = .unavailable("Close another migration first.")
        } catch let error as NSError {
            status = .unavailable("\(error.domain) \(error.code)")
        }
    }

    private func run(_ task: BGContinuedProcessingTask) {
        status = .running
        isExpired = false
        let total = remaining.count
        task.progress.totalUnitCount = Int64(total)

        let work = Task {
            do {
                while let album = remaining.first {
                    task.updateTitle(task.title, subtitle: "\(album.name), \(total - remaining.count + 1) of \(total)")
                    let child = Progress(totalUnitCount: Int64(album.files.count), parent: task.progress, pendingUnitCount: 1)
                    try await mover.move(album)
                    child.completedUnitCount = child.totalUnitCount
                    remaining.removeFirst()
                }
                status = .finished
                task.setTaskCompleted(success: true)
            } catch {
                status = .paused(done: total - remaining.count)
                task.setTaskCompleted(success: false)
            }
        }

        task.expirationHandler = { [weak self] in
            work.cancel()
            Task { @MainActor in self?.isExpired = true }
        }
    }
}
