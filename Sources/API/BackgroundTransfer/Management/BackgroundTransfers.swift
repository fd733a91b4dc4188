import BackgroundLedger
import BackgroundRuntime
import Foundation
import Spool
import Synchronization
import TransferMachines

/// All background transfers of this app, as a person or a command sees them: to list, follow, pause, resume, retry and cancel. Beyond Apple.
///
/// What is asked for here is durable when the call returns; the agent stops and begins attempts at once. Every call reads the ledger, which
/// takes a fraction of a millisecond for each transfer.
public enum BackgroundTransfers {
    /// What a person may want of a transfer.
    public enum Action: String, Sendable, CaseIterable {
        /// Ends it; what it holds on this machine is removed.
        case cancel
        /// Holds it until it is resumed. A request that must not be sent twice is let finish.
        case pause
        /// Lets it go on, whoever holds it.
        case resume
        /// Tries it now, also one that waits or had failed.
        case retry
    }

    /// Which transfers are meant.
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

    /// What an action did.
    public struct Changes: Sendable, Equatable {
        /// Transfers to which it meant something.
        public internal(set) var changed: [Int64] = []
        /// Pausing: those that are let finish, as nobody could know whether the server carried them out.
        public internal(set) var letFinish: [Int64] = []
        /// Cancelled uploads whose last request was under way: the server may have the file.
        public internal(set) var mayBeOnServer: [Int64] = []
        /// Transfers that had ended, and for which the action does nothing. A cancelled one is cancelled already.
        public internal(set) var ended: [Int64] = []
        /// Of the changed ones that go on: uploads for which no credential was given.
        public internal(set) var unrenewed: [Int64] = []
        /// Ids that no transfer has.
        public internal(set) var unknown: Set<Int64> = []
    }

    /// What opens the door of an upload's server, as it is configured now: the password that was refused may have been put right.
    public struct Credential: Sendable {
        /// Name and value of a header.
        public var header: (name: String, value: String)?
        /// Of `UploadKind.s3`.
        public var s3: S3Access?
        /// The destination's name and certificate authorities.
        public var server: UploadServer?

        /// Values that are `nil` stay as they were queued.
        public init(header: (name: String, value: String)? = nil, s3: S3Access? = nil, server: UploadServer? = nil) {
            (self.header, self.s3, self.server) = (header, s3, server)
        }
    }

    // MARK: Launches

    /// Names who makes the session when this process is launched for the events of one: what `UIApplicationDelegate` calls
    /// `application(_:handleEventsForBackgroundURLSession:completionHandler:)`. Call it before the launch begins, that is before
    /// `BGTaskScheduler.run()`, or in the `init` of the app.
    ///
    /// An app does not need it whose session, with its delegate, is made before that anyway, nor one whose scene has
    /// `.backgroundTask(.urlSession(…))`.
    ///
    /// - Parameter handler: called with the session's identifier. It makes the session with its delegate, and sees to it that the
    ///   completion handler is called after `urlSessionDidFinishEvents`: the launch ends with it. One at a time: the last one counts.
    public static func handleEventsForBackgroundURLSession(
        _ handler:
            @escaping @MainActor @Sendable (_ identifier: String, _ completionHandler: @escaping @Sendable () -> Void) -> Void
    ) { SessionLaunches.shared.set(handler) }

    // MARK: Looking

    /// Every transfer that is not forgotten, oldest first. Ended ones are kept for 30 days, 2,000 of them for longer.
    ///
    /// - Throws: when the ledger cannot be read; the error says why and what helps.
    public static func all() throws -> [BackgroundTransferStatus] {
        try AppRuntime.shared.ledger().read { try $0.transfers() }.map(BackgroundTransferStatus.init)
    }

    /// Those of a session that have not ended, oldest first.
    ///
    /// - Throws: when the ledger cannot be read.
    public static func unfinished(session identifier: String) throws -> [BackgroundTransferStatus] {
        try AppRuntime.shared.ledger().read { try $0.unfinishedTransfers(session: identifier) }.map(BackgroundTransferStatus.init)
    }

    /// The newest of a session that has not ended; `nil`: all have.
    ///
    /// - Throws: when the ledger cannot be read.
    public static func newestUnfinished(session identifier: String) throws -> BackgroundTransferStatus? {
        try AppRuntime.shared.ledger().read { try $0.newestUnfinishedTransfer(session: identifier) }
            .map(BackgroundTransferStatus.init)
    }

    /// The number of a session's newest transfer, ended or not; `nil`: it has none. Numbers grow: one that an app does not know yet is greater
    /// than all that it knows.
    ///
    /// - Throws: when the ledger cannot be read.
    public static func newest(session identifier: String) throws -> Int64? {
        try AppRuntime.shared.ledger().read { try $0.newestTransfer(session: identifier) }
    }

    /// Those with these numbers, in this order; numbers that no transfer has are left out.
    ///
    /// - Throws: when the ledger cannot be read.
    public static func statuses(of ids: [Int64]) throws -> [BackgroundTransferStatus] {
        try AppRuntime.shared.ledger().read { transaction in try ids.compactMap { try transaction.transfer($0) } }
            .map(BackgroundTransferStatus.init)
    }

    /// Returns the form in which a submission key is stored. An app may have put an address into its key, and a password into that.
    package static func stored(submissionKey: String) -> String { "key:" + FileDigest.sha256(of: Data(submissionKey.utf8)) }

    /// Returns the uploads of a session by their stored keys (``BackgroundTransferStatus/submission``). If an upload was submitted again after it
    /// failed, the newest transfer of its key counts. A key without a transfer is left out.
    ///
    /// - Throws: when the ledger cannot be read.
    package static func statuses(ofKeys keys: [String], session: String) throws -> [String: BackgroundTransferStatus] {
        guard !keys.isEmpty else { return [:] }
        return try AppRuntime.shared.ledger().read { try $0.transfers(ofKeys: keys, session: session) }
            .mapValues(BackgroundTransferStatus.init)
    }

    /// Returns the states of the uploads that ``statuses(ofKeys:session:)`` returns. Cost: one column for each key.
    ///
    /// - Throws: when the ledger cannot be read.
    package static func states(ofKeys keys: [String], session: String) throws -> [String: BackgroundTransferStatus.State] {
        guard !keys.isEmpty else { return [:] }
        return try AppRuntime.shared.ledger().read { try $0.states(ofKeys: keys, session: session) }
            .mapValues(BackgroundTransferStatus.State.init)
    }

    /// Returns the numbers of the transfers that have not ended. A number that no transfer has is left out.
    ///
    /// - Throws: when the ledger cannot be read.
    package static func unfinished(among ids: [Int64]) throws -> Set<Int64> {
        try ids.isEmpty ? [] : AppRuntime.shared.ledger().read { try $0.unfinishedTransfers(among: ids) }
    }

    /// Copies of files that were queued for upload, and that no transfer knows any more: the ledger was moved away, or came from a
    /// backup. An app that still wants them gives them to a new task. The agent removes them after a month.
    ///
    /// Cost: a look at two folders and at what the ledger knows.
    /// - Throws: when the ledger cannot be read; `URLError.Code.cannotOpenFile` while another process is queuing files.
    public static func leftCopies() throws -> [LeftCopy] {
        let folder = AppRuntime.shared.directories.leftCopies
        guard try AppRuntime.shared.directories.putAsideUnknownCopies(of: AppRuntime.shared.ledger()) else {
            throw URLError(.cannotOpenFile, userInfo: [NSLocalizedDescriptionKey: "another process is queuing files"])
        }
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return names.sorted().map { LeftCopy(folder.appendingPathComponent($0)) }
    }

    /// A file of ``leftCopies()``.
    public struct LeftCopy: Sendable, Equatable {
        /// Hex, of what was queued. Reads all of it.
        ///
        /// - Throws: when it cannot be read.
        public func sha256() throws -> String { try FileDigest.sha256(of: file).digest }

        /// It is not wanted any more.
        public func remove() { unlink(file.path) }

        /// Where it is.
        public var file: URL { place }
        private let place: URL

        fileprivate init(_ place: URL) { self.place = place }
    }

    /// The unfinished download that will stand at this path; `nil`: none.
    ///
    /// - Throws: when the ledger cannot be read.
    public static func download(to file: URL) throws -> BackgroundTransferStatus? {
        try AppRuntime.shared.ledger().read { try $0.unfinishedTransfer(to: file.path) }.map(BackgroundTransferStatus.init)
    }

    /// Returns whether a transfer waits for its queued copy, which is not in the spool. A task that is resumed under the same submission key brings
    /// a new copy.
    ///
    /// - Throws: when the ledger cannot be read.
    package static func lacksCopy(_ id: Int64) throws -> Bool {
        let spool = AppRuntime.shared.directories.spool
        return try AppRuntime.shared.ledger().read { try $0.transfer(id) }?.lacksCopy(in: spool) ?? false
    }

    // MARK: Steering

    /// Does something to transfers, in one durable transaction.
    ///
    /// - Parameters:
    ///   - action: what is wanted of them.
    ///   - selection: which ones.
    ///   - renewal: asked before anything changes, for each upload that may go on: what opens its server's door now; `nil`: it goes there
    ///     as it was queued.
    /// - Returns: what changed.
    /// - Throws: when the ledger cannot be written. Nothing has changed then.
    @discardableResult
    public static func perform(
        _ action: Action, on selection: Selection, renewal: (BackgroundTransferStatus) throws -> Credential? = { _ in nil }
    ) throws -> Changes {
        let now = AppRuntime.shared.now
        // Asked before the ledger is entered: others wait for that.
        let credentials = try action == .resume || action == .retry ? credentials(of: selection, renewal) : [:]
        // What goes on survives a reboot.
        let comeBack = { (changes: Changes) in
            let goesOn = action == .resume || action == .retry
            if goesOn, !changes.changed.isEmpty { AppRuntime.shared.comeBackAtLogin() }
        }
        return try AppRuntime.shared.commit(beforeStart: comeBack) { transaction -> Changes in
            var changes = Changes()
            if case .ids(let ids) = selection { changes.unknown = ids }
            // Also for those that only wait for their host to be there again.
            if action == .retry || action == .resume { try transaction.setFact(.retriedAt, now) }
            for var transfer in try transaction.transfers() {
                guard let id = transfer.id, selection.contains(id) else { continue }
                changes.unknown.remove(id)
                let event = action.event(now: now)
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

    /// Lets transfers go on that a person paused; those that the app holds stay held.
    ///
    /// - Throws: when the ledger cannot be written. Nothing has changed then.
    public static func unpause(_ ids: [Int64]) throws {
        let now = AppRuntime.shared.now
        try AppRuntime.shared.commit(beforeStart: { AppRuntime.shared.comeBackAtLogin() }) { transaction in
            for id in ids { try transaction.handle(.unpaused(now: now), transfer: id, now: now) }
        }
    }

    // MARK: Following

    /// How several transfers get on together: what a progress bar shows.
    public struct Tally: Sendable, Equatable {
        /// Bytes of all of them that are done.
        public let bytesDone: Int64
        /// Of those whose size is known.
        public let bytesTotal: Int64
        /// Those that move, or will, without anybody's doing.
        public let unfinished: Int
        /// Why the first of those that wait does; `nil`: none waits.
        public let waitingMessage: String?
    }

    /// Waits until none of these moves any more: each ended, or is held. Keeps an agent there meanwhile.
    ///
    /// - Parameters:
    ///   - ids: their numbers.
    ///   - onChange: called now and after every change, on a thread of the system's.
    /// - Returns: how they stand then; one that is forgotten is left out.
    /// - Throws: `CancellationError`, or that no agent stays, or that the ledger cannot be read.
    public static func follow(
        _ ids: [Int64], onChange: @escaping @Sendable (Tally) -> Void = { _ in }
    ) async throws -> [BackgroundTransferStatus] {
        try await follow(ids, untilTold: false, onChange: onChange)
    }

    /// - Parameter untilTold: also until the tasks' own delegates in this process have heard of the ends. One that another process tells
    ///   meanwhile is not waited for.
    package static func follow(
        _ ids: [Int64], untilTold: Bool, onChange: @escaping @Sendable (Tally) -> Void
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
            // Most looks end here, so no row is read before.
            let isUntold =
                try untilTold
                && ids.contains { id in
                    try transaction.isAwaited(id, by: process) && transaction.transfer(id)?.state.isTerminal == true
                }
            return isUntold ? nil : try ids.compactMap { try transaction.transfer($0) }.map(BackgroundTransferStatus.init)
        }
    }
}

extension BackgroundTransfers.Action {
    fileprivate func event(now: Date) -> TransferLife.Event {
        switch self {
        case .cancel: .cancelled(message: "Cancelled by hand.", now: now)
        case .pause: .paused
        case .resume: .resumed(now: now)
        case .retry: .retried(now: now)
        }
    }
}

extension URLSessionDownloadTask {
    /// Whether a text can be a file's SHA-256: 64 hex digits. Any other makes a task that expects it fail. Beyond Apple.
    public static func isSHA256(_ text: String) -> Bool { RequiredDigest(askedSHA256: text) != nil }
}
