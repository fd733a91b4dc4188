import BackgroundLedger
import BackgroundRuntime
import Foundation
import Spool
import Synchronization
import TransferMachines

/// Lists, follows, pauses, resumes, retries and cancels the background transfers of this app, for a settings window or a command.
/// Apple's API has no equivalent.
///
/// An action is stored in the ledger when the call returns. The agent then stops or begins attempts immediately. Every call reads
/// the ledger, which takes a fraction of a millisecond for each transfer.
public enum BackgroundTransfers {
    /// The actions on a transfer.
    public enum Action: String, Sendable, CaseIterable {
        /// Ends the transfer and removes its data on this machine.
        case cancel
        /// Pauses the transfer until the user or the app resumes it. A running request that must not be sent twice is completed
        /// first.
        case pause
        /// Resumes the transfer, even if the app suspended the transfer.
        case resume
        /// Tries the transfer now, even if the transfer waits for a later attempt or has failed.
        case retry
    }

    /// The transfers to which an action applies.
    public enum Selection: Sendable, Equatable {
        case all
        case ids(Set<Int64>)

        fileprivate func contains(_ id: Int64) -> Bool {
            switch self {
            case .all: true
            case .ids(let ids): ids.contains(id)
            }
        }
    }

    /// The result of an action.
    public struct Changes: Sendable, Equatable {
        /// The transfers that the action changed.
        public internal(set) var changed: [Int64] = []
        /// The running transfers that a pause does not interrupt. After an interruption, the agent could not detect whether the
        /// server processed the request.
        public internal(set) var letFinish: [Int64] = []
        /// The cancelled uploads whose last request was running, so that the server may have stored the file.
        public internal(set) var mayBeOnServer: [Int64] = []
        /// The transfers that had already ended, so that the action had no effect. A cancel does not list transfers that were
        /// already cancelled.
        public internal(set) var ended: [Int64] = []
        /// The changed uploads that will run again with the stored credential, because `renewal` returned no credential.
        public internal(set) var unrenewed: [Int64] = []
        /// The failed uploads that cannot be retried, because the agent's copies of the files are missing. The app has to upload
        /// the files again.
        public internal(set) var withoutCopy: [Int64] = []
        /// The ids for which no transfer exists.
        public internal(set) var unknown: Set<Int64> = []
    }

    /// The current credentials of an upload's server. These credentials replace the stored credentials, for example after the
    /// user corrected a password.
    public struct Credential: Sendable {
        /// The name and the value of the request header that contains the credential.
        public var header: (name: String, value: String)?
        /// The credentials of an S3 bucket, for uploads with `UploadKind.s3`.
        public var s3: S3Access?
        /// The name and the certificate authorities of the destination server.
        public var server: UploadServer?

        /// Creates a credential. If a value is `nil`, the stored value is kept.
        public init(header: (name: String, value: String)? = nil, s3: S3Access? = nil, server: UploadServer? = nil) {
            (self.header, self.s3, self.server) = (header, s3, server)
        }
    }

    // MARK: Launches

    /// Sets the handler for launches in which the app receives the events of a background session. The handler corresponds to
    /// `UIApplicationDelegate`'s `application(_:handleEventsForBackgroundURLSession:completionHandler:)`. Set the handler before
    /// the launch begins: before `BGTaskScheduler.run()`, or in the `init` of the app.
    ///
    /// An app does not need the handler in two cases: the app creates the session with a delegate before the launch begins, or a
    /// scene has `.backgroundTask(.urlSession(…))`.
    ///
    /// - Parameter handler: a closure that receives the session's identifier. The closure creates the session with a delegate.
    ///   After `urlSessionDidFinishEvents`, the app calls the completion handler, and the launch ends. Only the handler that was
    ///   set last is used.
    public static func handleEventsForBackgroundURLSession(
        _ handler:
            @escaping @MainActor @Sendable (_ identifier: String, _ completionHandler: @escaping @Sendable () -> Void) -> Void
    ) { SessionLaunches.shared.set(handler) }

    // MARK: Reading

    /// Returns every stored transfer, oldest first. The ledger keeps ended transfers for 30 days, and the newest 2,000 ended
    /// transfers for a longer time.
    ///
    /// - Throws: an error with the reason and a solution if the ledger cannot be read.
    public static func all() throws -> [BackgroundTransferStatus] {
        try AppRuntime.shared.ledger().read { try $0.transfers() }.map(BackgroundTransferStatus.init)
    }

    /// Returns the transfers of a session that have not ended, oldest first.
    ///
    /// - Throws: an error if the ledger cannot be read.
    public static func unfinished(session identifier: String) throws -> [BackgroundTransferStatus] {
        try AppRuntime.shared.ledger().read { try $0.unfinishedTransfers(session: identifier) }.map(BackgroundTransferStatus.init)
    }

    /// Returns the newest unfinished transfer of a session, or `nil` if all transfers have ended.
    ///
    /// - Throws: an error if the ledger cannot be read.
    public static func newestUnfinished(session identifier: String) throws -> BackgroundTransferStatus? {
        try AppRuntime.shared.ledger().read { try $0.newestUnfinishedTransfer(session: identifier) }
            .map(BackgroundTransferStatus.init)
    }

    /// Returns the number of a session's newest transfer, or `nil` if the session has no transfer. The transfer may have ended. A
    /// new transfer always has a greater number than all earlier transfers.
    ///
    /// - Throws: an error if the ledger cannot be read.
    public static func newest(session identifier: String) throws -> Int64? {
        try AppRuntime.shared.ledger().read { try $0.newestTransfer(session: identifier) }
    }

    /// Returns the transfers with these numbers, in the given order. Numbers without a transfer are ignored.
    ///
    /// - Throws: an error if the ledger cannot be read.
    public static func statuses(of ids: [Int64]) throws -> [BackgroundTransferStatus] {
        try AppRuntime.shared.ledger().read { transaction in try ids.compactMap { try transaction.transfer($0) } }
            .map(BackgroundTransferStatus.init)
    }

    /// Returns the form in which a submission key is stored. The key is hashed, because it may contain an address with a
    /// password.
    package static func stored(submissionKey: String) -> String { "key:" + FileDigest.sha256(of: Data(submissionKey.utf8)) }

    /// Returns the uploads of a session with these stored keys (``BackgroundTransferStatus/submission``). If an upload failed and
    /// was submitted again with the same key, its newest transfer is returned. Keys without a transfer are ignored.
    ///
    /// - Throws: an error if the ledger cannot be read.
    package static func statuses(ofKeys keys: [String], session: String) throws -> [String: BackgroundTransferStatus] {
        guard !keys.isEmpty else { return [:] }
        return try AppRuntime.shared.ledger().read { try $0.transfers(ofKeys: keys, session: session) }
            .mapValues(BackgroundTransferStatus.init)
    }

    /// Returns the states of the uploads that ``statuses(ofKeys:session:)`` returns. Cost: one column is read for each key.
    ///
    /// - Throws: an error if the ledger cannot be read.
    package static func states(ofKeys keys: [String], session: String) throws -> [String: BackgroundTransferStatus.State] {
        guard !keys.isEmpty else { return [:] }
        return try AppRuntime.shared.ledger().read { try $0.states(ofKeys: keys, session: session) }
            .mapValues(BackgroundTransferStatus.State.init)
    }

    /// Returns the numbers of the transfers that have not ended. Numbers without a transfer are ignored.
    ///
    /// - Throws: an error if the ledger cannot be read.
    package static func unfinished(among ids: [Int64]) throws -> Set<Int64> {
        try ids.isEmpty ? [] : AppRuntime.shared.ledger().read { try $0.unfinishedTransfers(among: ids) }
    }

    /// Returns the copies of files that were queued for upload but belong to no transfer any more. Such copies exist if the
    /// ledger was moved to another folder or restored from a backup. To upload such a copy, the app creates a new task with it.
    /// The agent removes the copies after a month.
    ///
    /// Cost: this method lists two folders, and reads the names of copies from the ledger.
    /// - Throws: an error if the ledger cannot be read, or `URLError.Code.cannotOpenFile` if another process is queuing files at
    ///   the same time.
    public static func leftCopies() throws -> [LeftCopy] {
        let folder = AppRuntime.shared.directories.leftCopies
        guard try AppRuntime.shared.directories.moveUnknownCopies(of: AppRuntime.shared.ledger()) else {
            throw URLError(.cannotOpenFile, userInfo: [NSLocalizedDescriptionKey: "another process is queuing files"])
        }
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return names.sorted().map { LeftCopy(folder.appendingPathComponent($0)) }
    }

    /// A copy of a file that was queued for upload but belongs to no transfer any more. See ``leftCopies()``.
    public struct LeftCopy: Sendable, Equatable {
        /// Returns the SHA-256 in hex of the copy. Cost: the complete file is read.
        ///
        /// - Throws: an error if the file cannot be read.
        public func sha256() throws -> String { try FileDigest.sha256(of: file).digest }

        /// Removes the copy.
        public func remove() { unlink(file.path) }

        /// The path of the copy that the agent made of the file.
        public var file: URL { place }
        private let place: URL

        fileprivate init(_ place: URL) { self.place = place }
    }

    /// Returns the unfinished download with this destination, or `nil` if no such download exists.
    ///
    /// - Throws: an error if the ledger cannot be read.
    public static func download(to file: URL) throws -> BackgroundTransferStatus? {
        try AppRuntime.shared.ledger().read { try $0.unfinishedTransfer(to: file.path) }.map(BackgroundTransferStatus.init)
    }

    /// Returns whether the spool has lost the agent's copy of the file of an unfinished or failed upload. If the app resumes a
    /// task with the same submission key, a new copy is stored.
    ///
    /// - Throws: an error if the ledger cannot be read.
    package static func lacksCopy(_ id: Int64) throws -> Bool {
        let spool = AppRuntime.shared.directories.spool
        return try AppRuntime.shared.ledger().read { try $0.transfer(id) }?.lacksCopy(in: spool) ?? false
    }

    /// Returns whether the spool contains the agent's copy of the file of an upload, and the copy is unchanged. Cost: the
    /// complete copy is read.
    ///
    /// - Throws: `Snapshot.Failure` if the copy cannot be read, or if the ledger cannot be read.
    package static func hasIntactCopy(_ id: Int64) throws -> Bool {
        let spool = AppRuntime.shared.directories.spool
        guard let transfer = try AppRuntime.shared.ledger().read({ try $0.transfer(id) }), !transfer.lacksCopy(in: spool) else {
            return false
        }
        guard let name = transfer.bodyFile, let wanted = transfer.sourceSHA256 else { return true }
        return try FileDigest.sha256(of: spool.appendingPathComponent(name, isDirectory: false)).digest == wanted
    }

    // MARK: Actions

    /// Applies an action to transfers, in one durable transaction.
    ///
    /// - Parameters:
    ///   - action: the action that is applied to the transfers.
    ///   - selection: the transfers to which the action is applied.
    ///   - renewal: a closure that returns the current credentials of an upload's server, or `nil` to use the stored credentials.
    ///     The closure is called before any change, for each upload that can continue.
    /// - Returns: the changes.
    /// - Throws: an error if the ledger cannot be written. In this case nothing has changed.
    @discardableResult
    public static func perform(
        _ action: Action, on selection: Selection, renewal: (BackgroundTransferStatus) throws -> Credential? = { _ in nil }
    ) throws -> Changes {
        let now = AppRuntime.shared.now
        let spool = AppRuntime.shared.directories.spool
        // The closure `renewal` may be slow. The closure is called before the write transaction, because other processes have to
        // wait during the transaction.
        let credentials = try action == .resume || action == .retry ? credentials(of: selection, renewal) : [:]
        // If the action lets transfers continue, the agent's login entry is installed, so that the transfers also continue after
        // a reboot.
        let comeBack = { (changes: Changes) in
            let shouldContinue = action == .resume || action == .retry
            if shouldContinue, !changes.changed.isEmpty { AppRuntime.shared.installLoginEntry() }
        }
        return try AppRuntime.shared.commit(beforeStart: comeBack) { transaction -> Changes in
            var changes = Changes()
            if case .ids(let ids) = selection { changes.unknown = ids }
            // The time of the action is recorded even if no row changes. If the agent sends no requests to a server that it could
            // not reach, the new time makes the agent try this server again.
            if action == .retry || action == .resume { try transaction.setFact(.retriedAt, now) }
            for var transfer in try transaction.transfers() {
                guard let id = transfer.id, selection.contains(id) else { continue }
                changes.unknown.remove(id)
                let event = action.event(now: now)
                if action == .retry, transfer.state.isTerminal, transfer.lacksCopy(in: spool) {
                    changes.withoutCopy.append(id)
                    continue
                }
                guard transfer.isChanged(by: event) else {
                    if action == .pause, transfer.state == .running { changes.letFinish.append(id) }
                    let isDone = action == .cancel && transfer.state == .cancelled
                    if transfer.state.isTerminal, !isDone { changes.ended.append(id) }
                    continue
                }
                if action == .cancel, transfer.mayBeOnServer { changes.mayBeOnServer.append(id) }
                try transaction.handle(event, &transfer, now: now)
                changes.changed.append(id)
                guard transfer.state == .queued, let spec = transfer.upload, spec.method != .plain else { continue }
                if let credential = credentials[id] {
                    try transaction.renewCredential(
                        of: &transfer, header: credential.header, s3: credential.s3, server: credential.server)
                } else {
                    changes.unrenewed.append(id)
                }
            }
            return changes
        }
    }

    private static func credentials(
        of selection: Selection, _ renewal: (BackgroundTransferStatus) throws -> Credential?
    ) throws -> [Int64: Credential] {
        let uploads = try AppRuntime.shared.ledger().read { try $0.transfers() }.filter { transfer in
            transfer.upload.map { $0.method != .plain } ?? false && transfer.state != .completed
                && transfer.id.map(selection.contains) ?? false
        }
        var credentials: [Int64: Credential] = [:]
        for upload in uploads.map(BackgroundTransferStatus.init) { credentials[upload.id] = try renewal(upload) }
        return credentials
    }

    /// Resumes transfers that the user paused. A transfer that the app suspended stays suspended.
    ///
    /// - Throws: an error if the ledger cannot be written, so no transfer was resumed.
    public static func unpause(_ ids: [Int64]) throws {
        let now = AppRuntime.shared.now
        try AppRuntime.shared.commit(beforeStart: { AppRuntime.shared.installLoginEntry() }) { transaction in
            for id in ids { try transaction.handle(.unpaused(now: now), transfer: id, now: now) }
        }
    }

    // MARK: Waiting

    /// The combined progress of several transfers, for a progress bar.
    public struct Tally: Sendable, Equatable {
        /// The number of transferred bytes of all transfers.
        public let bytesDone: Int64
        /// The total size in bytes of all transfers whose size is known.
        public let bytesTotal: Int64
        /// The number of transfers that are running, or that will run without an action of the user or the app.
        public let unfinished: Int
        /// The reason why the first waiting transfer waits, or `nil` if no transfer waits.
        public let waitingMessage: String?
    }

    /// Waits until each of the transfers has ended, is paused, or is suspended by the app. During the wait, this method keeps an
    /// agent running.
    ///
    /// - Parameters:
    ///   - ids: the numbers of the transfers.
    ///   - onChange: a closure that is called once at the start and after every change, on a background thread.
    /// - Returns: the transfers after the wait. A transfer that is not stored any more is not included.
    /// - Throws: `CancellationError`, or an error if no agent can be kept running or the ledger cannot be read.
    public static func follow(
        _ ids: [Int64], onChange: @escaping @Sendable (Tally) -> Void = { _ in }
    ) async throws -> [BackgroundTransferStatus] {
        try await follow(ids, untilReported: false, onChange: onChange)
    }

    /// - Parameter untilReported: `true` to wait also until the delegates in this process have received the results of the
    ///   transfers. The method does not wait for results that another process reports.
    package static func follow(
        _ ids: [Int64], untilReported: Bool, onChange: @escaping @Sendable (Tally) -> Void
    ) async throws -> [BackgroundTransferStatus] {
        let latest = Mutex<Tally?>(nil)
        let process = AppRuntime.shared.identity
        return try await AppRuntime.shared.waitForAgent {
            if let tally = latest.withLock({ $0 }) { onChange(tally) }
        } until: { transaction -> [BackgroundTransferStatus]? in
            let tally = try transaction.tally(of: ids)
            latest.withLock {
                $0 = Tally(
                    bytesDone: tally.bytesDone, bytesTotal: tally.bytesTotal, unfinished: tally.unfinished,
                    waitingMessage: tally.waitingMessage)
            }
            guard tally.unfinished == 0 else { return nil }
            // Most calls return at the check above, so the rows of the transfers are read only after this check.
            let isUnreported =
                try untilReported
                && ids.contains { id in
                    try transaction.isAwaited(id, by: process) && transaction.transfer(id)?.state.isTerminal == true
                }
            return isUnreported ? nil : try ids.compactMap { try transaction.transfer($0) }.map(BackgroundTransferStatus.init)
        }
    }
}

extension BackgroundTransfers.Action {
    fileprivate func event(now: Date) -> TransferLife.Event {
        switch self {
        case .cancel: .cancelled(message: "The user cancelled the transfer.", now: now)
        case .pause: .paused
        case .resume: .resumed(now: now)
        case .retry: .retried(now: now)
        }
    }
}

extension URLSessionDownloadTask {
    /// Returns whether a text is a valid SHA-256 of a file: 64 hex digits. A task fails if its expected SHA-256 is any other
    /// text. Apple's API has no equivalent.
    public static func isSHA256(_ text: String) -> Bool { RequiredDigest(askedSHA256: text) != nil }
}
