import BackgroundTransfer
import Foundation
import TransferMachines

/// Connects the uploads of files that belong together: the photo and the video of a Live Photo, and sidecars.
enum PhotoGroups {
    typealias Result = Swift.Result<PhotoUploads.Prepared, any Error>

    /// Applies the results of photos to the files that belong to them.
    static func join(_ results: inout [Result], _ files: [PhotoFile]) {
        for (index, file) in files.enumerated() {
            guard let owner = file.role.owner, let photo = files.firstIndex(where: { $0.role == .photo && $0.path == owner })
            else { continue }
            if case .video = file.role { joinPair(&results, photo, index, files) }
            if !isSent(results[photo]) { refuse(&results[index], file, owner) }
        }
    }

    /// Holds back or refuses both files of a Live Photo if one of them is held back or cannot be read.
    private static func joinPair(
        _ results: inout [Result], _ photo: Int, _ video: Int, _ files: [PhotoFile]
    ) {
        for (one, other) in [(photo, video), (video, photo)] where !isSent(results[one]) {
            if case .success(let held) = results[one], case .hold(let reason) = held.privacy {
                guard case .success(var prepared) = results[other], case .send = prepared.privacy else { continue }
                let name = URL(exactPath: files[one].path).lastPathComponent
                prepared.privacy = .hold("\(name) belongs to this file and is held back: \(reason)")
                results[other] = .success(prepared)
            } else {
                refuse(&results[other], files[other], files[one].path)
            }
        }
    }

    private static func isSent(_ result: Result) -> Bool {
        if case .success(let photo) = result, case .send = photo.privacy { true } else { false }
    }

    /// Refuses a file because the file that it belongs to is not sent.
    private static func refuse(_ result: inout Result, _ file: PhotoFile, _ other: String) {
        guard case .success(let prepared) = result, case .send = prepared.privacy else { return }
        prepared.task.discardSnapshot()
        result = .failure(PhotoUploadError.belongsToUnsent(path: file.path, other: other))
    }

    /// Makes a companion begin after its photo is complete. In a library of photos, a photo begins after its video is complete.
    static func connect(
        _ submitted: [(prepared: PhotoUploads.Prepared, record: PhotoRecord)], _ destination: PhotoDestination,
        _ store: StormyStore
    ) throws {
        let keys = Dictionary(submitted.map { ($0.prepared.path, $0.record.submission) }) { one, _ in one }
        let tasks = Dictionary(submitted.map { ($0.prepared.path, $0.prepared.task) }) { one, _ in one }
        for (prepared, record) in submitted {
            guard let owner = prepared.role.owner, let own = record.submission else { continue }
            // The photo may have been queued by an earlier command.
            let known = try keys[owner] ?? store.submission(ofFile: owner, to: destination.identity)
            guard let photo = known else { continue }
            if destination.way.kind.isPhotoLibrary {
                tasks[owner]?.delivery.follow(own)
                prepared.task.delivery.lead(photo)
            } else {
                prepared.task.delivery.follow(photo)
                tasks[owner]?.delivery.lead(own)
            }
        }
    }
}
