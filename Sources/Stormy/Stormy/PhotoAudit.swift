import BackgroundRuntime
import BackgroundTasks
import BackgroundTransfer
import Foundation
import ProcessSupport
import Spool
import Synchronization
import TransferMachines

/// Finds out which files of the user are safely at a destination.
///
/// A file is compared by its content, and not by its name or its time. If this computer has no record of the content, the server
/// is asked, so that the audit also works after a new installation.
package struct PhotoAudit: Sendable {
    /// The state of one file.
    package enum Finding: Equatable, Sendable {
        /// - Parameters:
        ///   - isProven: `true` if the server reported the digest of the file now, or the file was read back now.
        ///   - isChanged: `true` if the copy on the server is not equal to the file, because the location was removed.
        case uploaded(url: String?, isProven: Bool, isChanged: Bool)
        /// The upload is not complete. The text contains the reason why the upload waits.
        case onItsWay(String?)
        case held(String)
        /// The upload failed or was cancelled, or the server does not have the photo any more.
        case failed(String)
        case neverUploaded
        /// The file could not be read.
        case unreadable(String)
        /// The server could not be asked about the file. The text contains the reason.
        case unknown(String)
    }

    package struct Options: Sendable {
        package var destination: PhotoDestination
        /// The configured setting whether photos keep their location.
        package var keepsLocation: Bool?
        /// `true` to ask the server also about photos that were uploaded by this computer.
        package var verifies: Bool
        /// `true` to read the photos back from a library of photos. A library may have a record of a photo whose file is lost.
        package var readsBack: Bool

        package init(destination: PhotoDestination, keepsLocation: Bool?, verifies: Bool = false, readsBack: Bool = false) {
            (self.destination, self.keepsLocation) = (destination, keepsLocation)
            (self.verifies, self.readsBack) = (verifies, readsBack)
        }
    }

    /// The progress in bytes: of the files that are read, and later of the files that the server is asked about.
    package typealias Progress = @Sendable (_ done: Int64, _ total: Int64, _ waiting: String?) -> Void

    let store: StormyStore
    let options: Options
    private let names: Set<String>

    package init(store: StormyStore, options: Options) {
        (self.store, self.options) = (store, options)
        names = Set(StormySettings.current.destinations.map(\.name))
    }

    /// - Returns: A finding for each file, in the order of the files.
    package func run(_ files: [String], onProgress: @escaping Progress) async throws -> [Finding] {
        let contents = try digests(of: files, onProgress)
        let known = try KnownUploads(store, options.destination, names)
        var findings = contents.map { content -> Finding in
            switch content {
            case .success(let original): known.finding(original.sha256)
            case .failure(let problem): .unreadable(problem.reason)
            }
        }
        let asked = findings.indices.filter { index in
            switch findings[index] {
            case .neverUploaded: true
            case .uploaded: options.verifies
            case .onItsWay, .held, .failed, .unreadable, .unknown: false
            }
        }
        try await ask(asked, files, contents.map { try? $0.get().sha256 }, known, &findings, onProgress)
        for (index, content) in contents.enumerated() {
            guard case .uploaded = findings[index], case .success(let original) = content else { continue }
            if PathStatus.at(files[index]).information.map(PhotoOriginal.Version.init) != original.version {
                findings[index] = .unknown(Self.changed)
            }
        }
        return findings
    }

    /// A sentence for the user about a destination that cannot be asked. `nil` if the destination can be asked.
    package static func limit(of destination: PhotoDestination) -> String? {
        guard !destination.way.kind.canOnlyCheck || destination.isForOneFile else { return nil }
        return "\(destination.name) cannot search for photos, so only uploads of this computer are known"
    }

    // MARK: Reading files

    private struct Unreadable: Error {
        let reason: String
    }

    private static let changed = "the file changed during the audit"

    /// Returns the content of each file. A file that is unchanged since it was read last is not read again, if the file system
    /// records each change.
    private func digests(of files: [String], _ onProgress: @escaping Progress) throws -> [Result<PhotoOriginal, Unreadable>] {
        let recorded = try store.originals()
        var recordsChanges: [Int64: Bool] = [:]
        var results = [Result<PhotoOriginal, Unreadable>?](repeating: nil, count: files.count)
        var (unread, total, gone): ([(index: Int, bytes: Int64)], Int64, [PathName]) = ([], 0, [])
        for (index, file) in files.enumerated() {
            let name = PathName(PathName.absolute(file))
            switch PathStatus.at(file) {
            case .found(let information):
                let version = PhotoOriginal.Version(information)
                if recordsChanges[version.device] == nil {
                    recordsChanges[version.device] = FileSystemKind.recordsEachChange(at: file)
                }
                if let original = recorded[name], original.version == version, !original.isOther,
                    recordsChanges[version.device] == true
                {
                    results[index] = .success(original)
                } else {
                    unread.append((index, version.byteCount))
                    total += version.byteCount
                }
            case .absent:
                results[index] = .failure(Unreadable(reason: "no such file"))
                gone.append(name)
            case .unreadable(let code): results[index] = .failure(Unreadable(reason: String(cString: strerror(code))))
            }
        }
        try store.removeOriginals(gone.filter { recorded[$0] != nil })
        let all = total
        let read = Mutex<Int64>(0)
        // The records of many files are stored in one commit. If the command is killed, only the last files are read again.
        for batch in stride(from: 0, to: unread.count, by: 200).map({ unread[$0..<min($0 + 200, unread.count)] }) {
            let made = Array(batch).mapInParallel { index, bytes in
                let result = Self.read(files[index])
                onProgress(
                    read.withLock {
                        $0 += bytes; return $0
                    }, all, nil)
                return (index, result)
            }
            try store.record(made.compactMap { try? $0.1.get() }, now: BGTaskScheduler.now)
            for (index, result) in made { results[index] = result }
        }
        return results.map { $0 ?? .failure(Unreadable(reason: "the file was not read")) }
    }

    private static func read(_ file: String) -> Result<PhotoOriginal, Unreadable> {
        do throws(Snapshot.Failure) {
            return .success(try PhotoOriginal.read(PathName.absolute(file)))
        } catch {
            switch error {
            case .unreadable(_, let reason), .cannotWrite(_, let reason): return .failure(Unreadable(reason: reason))
            case .missing, .notAFile, .empty, .changedWhileRead, .noSpace: return .failure(Unreadable(reason: "\(error)"))
            }
        }
    }

    // MARK: Asking the server

    /// Asks the server about files, and records the photos that the server has or does not have any more.
    private func ask(
        _ asked: [Int], _ files: [String], _ digests: [String?], _ known: KnownUploads, _ findings: inout [Finding],
        _ onProgress: @escaping Progress
    ) async throws {
        if asked.isEmpty { return }
        guard options.destination.way.kind.canOnlyCheck, !options.destination.isForOneFile else {
            return try await askByReceipts(asked, digests, known, &findings)
        }
        let turn: SessionTurn
        do { turn = try SessionTurn(PhotoUploads.checkSessionIdentifier) } catch let error as SessionTurn.NoAgent {
            for index in asked { findings[index] = .unknown(error.description) }
            return
        }
        defer { turn.end() }
        let uploads = PhotoUploads(store: store, onlyChecks: true)
        defer { uploads.sessions.finish() }
        let check = uploads.serverCheck(options.destination)
        var trouble: String?
        for batch in stride(from: 0, to: asked.count, by: 100).map({ asked[$0..<min($0 + 100, asked.count)] }) {
            if let trouble {
                for index in batch { findings[index] = .unknown(trouble) }
                continue
            }
            let prepared = Array(batch).mapInParallel { [known] index in
                let record = digests[index].flatMap { known.uploaded($0) }
                return (index, record, Result { try prepare(files[index], record, uploads) })
            }
            var questions: [(index: Int, record: PhotoRecord?, photo: PhotoUploads.Prepared)] = []
            for (index, record, result) in prepared {
                switch result {
                // The problem concerns the copy, and not the file.
                case .failure(let error as Snapshot.Failure) where error.isOfCopy: findings[index] = .unknown("\(error)")
                case .failure(let error): findings[index] = .unreadable("\(error)")
                case .success(let photo):
                    if photo.original?.sha256 != digests[index] {
                        findings[index] = .unknown(Self.changed)
                    } else if case .hold(let reason) = photo.privacy {
                        if record == nil { findings[index] = .held(reason) }
                    } else if !options.verifies, let finding = known.finding(ofCopy: photo.digest, of: photo.original?.sha256) {
                        // Another file had the same copy, for example a file whose location was removed by another program.
                        findings[index] = finding
                    } else {
                        questions.append((index, record, photo))
                        continue
                    }
                    photo.task.discardSnapshot()
                }
            }
            try uploads.recordOriginals(of: questions.map(\.photo))
            let (found, isStuck) = try await check.run(questions.map(\.photo)) { tally in
                onProgress(tally.bytesDone, tally.bytesTotal, tally.waitingMessage)
            }
            var arrivals: [PhotoRecord] = []
            for ((index, record, photo), finding) in zip(questions, found) {
                findings[index] = try await conclude(finding, photo, record, &arrivals)
                if isStuck, case .unknown(let reason) = finding { trouble = reason }
            }
            try store.recordFound(arrivals)
        }
    }

    /// Copies and cleans a file as for its upload.
    private func prepare(_ file: String, _ record: PhotoRecord?, _ uploads: PhotoUploads) throws -> PhotoUploads.Prepared {
        let order = PhotoUploads.BatchOptions(
            to: options.destination,
            location: LocationDecision(
                option: record?.keepsLocation, destination: options.destination, configuration: options.keepsLocation))
        // The server may have given another name to the photo, and the destination may have used other folders.
        let place = options.destination.way.kind.hasFolders ? record?.remoteURL.flatMap { URL(string: $0) } : nil
        return try uploads.prepare(
            PhotoFile(path: file, isKnownPhotoOnly: false), named: place?.lastPathComponent, in: folder(of: place), order)
    }

    /// Returns the folder of a stored photo, at the configured address of the server.
    private func folder(of place: URL?) -> URL? {
        guard let place, options.destination.contains(PublicAddress.of(place.deletingLastPathComponent().absoluteString)),
            var parts = URLComponents(url: options.destination.url, resolvingAgainstBaseURL: false)
        else { return nil }
        parts.percentEncodedPath =
            URLComponents(url: place.deletingLastPathComponent(), resolvingAgainstBaseURL: false)?.percentEncodedPath
            ?? parts.percentEncodedPath
        return parts.url
    }

    private func conclude(
        _ finding: PhotoServerCheck.Finding, _ photo: PhotoUploads.Prepared, _ record: PhotoRecord?,
        _ arrivals: inout [PhotoRecord]
    ) async throws -> Finding {
        switch finding {
        case .there(let check):
            let url = check.receipt?.url
            var isProven = check.receipt?.proof == .digest
            if options.readsBack, options.destination.way.kind.isPhotoLibrary {
                let read = try await BackgroundTransfers.verifyUpload(check.id, credential: options.destination.asCredential)
                if [.gone, .differs].contains(read) { return .failed("the server has a record of the photo, but not its file") }
                isProven = read == .same
            }
            if record == nil {
                let now = BGTaskScheduler.now
                arrivals.append(
                    PhotoRecord(
                        state: .completed, path: photo.path, submission: check.submission, digest: photo.digest, createdAt: now,
                        changedAt: now, destination: options.destination.identity, remoteURL: url))
            }
            return .uploaded(
                url: url ?? record?.remoteURL, isProven: isProven, isChanged: photo.original?.sha256 != photo.digest)
        case .absent:
            guard let record else { return .neverUploaded }
            return try recordLoss(of: record)
        case .unknown(let reason): return .unknown(reason)
        }
    }

    /// Records that the server does not have a photo, so that the photo can be uploaded again.
    private func recordLoss(of record: PhotoRecord) throws -> Finding {
        let reason = "the server does not have the photo any more"
        try store.photoWasLost(record.submission, message: reason)
        return .failed(reason)
    }

    /// Verifies uploads by their receipts, for protocols that cannot search for a file.
    private func askByReceipts(
        _ asked: [Int], _ digests: [String?], _ known: KnownUploads, _ findings: inout [Finding]
    ) async throws {
        for index in asked {
            guard let digest = digests[index], let record = known.uploaded(digest) else { continue }
            guard let transfer = try PhotoUploads.transfers(of: [record]).values.first, transfer.receipt != nil else {
                findings[index] = .unknown("the receipt of the upload was removed")
                continue
            }
            let found = try await BackgroundTransfers.verifyUpload(transfer.id, credential: options.destination.asCredential)
            switch found {
            case .same, .sameRecord, .sameLength:
                findings[index] = .uploaded(
                    url: record.remoteURL, isProven: found != .sameLength, isChanged: record.digest != digest)
            case .gone, .differs: findings[index] = try recordLoss(of: record)
            case .unknown(let reason), .unreachable(let reason): findings[index] = .unknown(reason)
            }
        }
    }
}
