import BackgroundTransfer
import Foundation
import ProcessSupport
import TransferMachines

/// Connects the uploads of files that belong together: the photo and the video of a Live Photo, and sidecars.
enum PhotoGroups {
    typealias Result = Swift.Result<PhotoUploads.Prepared, any Error>

    /// Applies the results of photos to the files that belong to them.
    static func join(_ results: inout [Result], _ files: [PhotoFile]) {
        let photos = Dictionary(files.indices.filter { files[$0].role == .photo }.map { (files[$0].path, $0) }) { one, _ in one }
        for (index, file) in files.enumerated() {
            guard let owner = file.role.owner, let photo = photos[owner] else { continue }
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

    /// Adds the digests of the photos to the files that belong to them. A group is recognized by these digests after its folder was
    /// moved or copied.
    static func withOwners(
        _ photos: [PhotoUploads.Prepared], _ destination: PhotoDestination, _ store: StormyStore
    ) throws -> [PhotoUploads.Prepared] {
        let digests = Dictionary(photos.map { ($0.path, $0.digest) }) { one, _ in one }
        return try photos.map { photo in
            guard let owner = photo.role.owner.map({ PathName.absolute($0) }) else { return photo }
            var photo = photo
            photo.ownerDigest = try digests[owner] ?? store.upload(ofFile: owner, to: destination.identity)?.digest
            return photo
        }
    }

    /// Makes a companion begin after its photo is complete. In a library of photos, a photo begins after its video is complete. If
    /// the photo was queued earlier, the video is linked to the photo later.
    ///
    /// - Parameters:
    ///   - photos: All files of the call.
    ///   - submitted: The submission keys of the files that get new uploads, by their paths. Other files were queued or uploaded
    ///     before.
    static func connect(
        _ photos: [PhotoUploads.Prepared], _ submitted: [String: String], _ destination: PhotoDestination, _ store: StormyStore
    ) throws {
        let tasks = Dictionary(photos.map { ($0.path, $0.task) }) { one, _ in one }
        let digests = Dictionary(photos.map { ($0.path, $0.digest) }) { one, _ in one }
        func earlier(_ path: String) throws -> PhotoRecord? {
            try store.upload(ofFile: path, digest: digests[path], to: destination.identity)
        }
        for companion in photos {
            guard let owner = companion.role.owner else { continue }
            let photo = PathName.absolute(owner)
            let isVideoFirst = destination.way.kind.isPhotoLibrary && submitted[photo] != nil
            let (leader, follower) = isVideoFirst ? (companion.path, photo) : (photo, companion.path)
            // Other keys need a search in the store.
            guard submitted[leader] != nil || submitted[follower] != nil else { continue }
            let known = submitted[leader] == nil ? try earlier(leader) : nil
            if let url = known?.remoteURL, known?.state == .completed {
                tasks[follower]?.delivery.join(URL(exactPath: leader).lastPathComponent, storedAt: url, asVideo: !isVideoFirst)
                continue
            }
            guard let leaderKey = submitted[leader] ?? known?.submission else { continue }
            if submitted[follower] != nil { tasks[follower]?.delivery.follow(leaderKey, asVideo: !isVideoFirst) }
            let followerKey = try submitted[follower] ?? earlier(follower)?.submission
            if let followerKey, submitted[leader] != nil { tasks[leader]?.delivery.lead(followerKey) }
        }
    }
}
