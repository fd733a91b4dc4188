import BackgroundLedger
import Foundation
import TransferMachines

// How a transfer waits, fails and ends, in every part of the agent.
extension Pass {
    /// It ends for good: its row, its event, its files.
    mutating func end(
        _ transfer: inout TransferRecord, as outcome: TransferLife.Outcome, _ reason: TransferLife.Reason? = nil
    ) throws {
        let before = transfer
        let commands = try transaction.handle(.ended(outcome, reason, now: now), &transfer, now: now)
        remove(commands, of: before)
        // A version that was begun and never committed may have left it.
        if outcome == .completed, let other = before.partPlace(in: spool)?.other {
            perform(.removeFile(other.url))
        }
        // It may have been said that its server cannot be reached through this network.
        if outcome == .completed, before.errorCode != nil { try takeBack { AgentNotice.suspects($0, host: before.host) } }
        noteEnded(before)
        log(
            .transferEnded, (.transfer, transfer.id ?? 0), (.kind, transfer.kind.rawValue), (.identifier, transfer.session),
            (.outcome, outcome.rawValue), (.host, transfer.host), (.reason, transfer.errorMessage ?? ""))
    }

    mutating func fail(_ transfer: inout TransferRecord, _ trouble: TransferTrouble) throws {
        try end(&transfer, as: .failed, TransferLife.Reason(trouble))
    }

    mutating func fail(_ transfer: inout TransferRecord, _ code: URLError.Code, _ message: String) throws {
        try fail(&transfer, TransferTrouble(code: code.rawValue, message: message))
    }

    /// The file that it was to be sent from cannot be opened. Nothing was sent.
    mutating func failWithoutSource(_ transfer: inout TransferRecord, _ trouble: FileTrouble) throws {
        var trouble = trouble
        // Only a copy that does not exist, in the folder that it was put into, cannot be sent later.
        if trouble == .queuedCopyIsGone, transfer.bodyFile != nil, try !transaction.knows(spool: spool) {
            trouble = .queuedCopyIsElsewhere(spool)
        }
        guard trouble.isPassing else { return try fail(&transfer, .fileDoesNotExist, trouble.why) }
        try wait(&transfer, for: Self.diskPause, .disk(trouble, .cannotOpenFile))
    }

    /// It is tried again later.
    mutating func wait(_ transfer: inout TransferRecord, for seconds: Double, _ trouble: TransferTrouble) throws {
        let until = now.addingTimeInterval(seconds)
        try transaction.handle(.waits(until: until, TransferLife.Reason(trouble)), &transfer, now: now)
        log(.transferWaits, (.transfer, transfer.id ?? 0), (.seconds, Int(seconds.rounded(.up))), (.reason, trouble.message))
    }

    /// Seconds until a file is tried again that could not be used.
    static let diskPause: Double = 60

    /// A fault of our own disk that may pass is waited for, until the transfer has made no progress for too long (``Attempts``).
    mutating func failLocally(
        _ transfer: inout TransferRecord, _ trouble: FileTrouble, pause: Double = diskPause
    ) throws {
        // Where it would be sent again for that, and must not be, it fails.
        guard trouble.isPassing, transfer.mayBeRepeated || transfer.isFinishing else {
            return try fail(&transfer, .cannotWriteToFile, trouble.why)
        }
        try wait(&transfer, for: pause, .disk(trouble, .cannotWriteToFile))
    }

    /// What an event of its life leaves to remove.
    ///
    /// - Parameter before: as it was, with the names of its files.
    mutating func remove(_ commands: [TransferLife.Command], of before: TransferRecord) {
        for effect in AgentEffect.removals(commands, of: before, in: spool) { perform(effect) }
    }
}

extension TransferTrouble {
    static func disk(_ trouble: FileTrouble, _ code: URLError.Code) -> TransferTrouble {
        TransferTrouble(code: code.rawValue, message: "Waiting for the disk: \(trouble.why)")
    }
}

extension AgentEffect {
    /// The removals of the files that an event in the life of a transfer leaves over.
    ///
    /// - Parameter transfer: the row before the event, with the names of the files.
    static func removals(_ commands: [TransferLife.Command], of transfer: TransferRecord, in spool: URL) -> [AgentEffect] {
        var files: [URL] = []
        if commands.contains(.removeFiles) { files += transfer.remains(in: spool) }
        if commands.contains(.removeBody), let body = transfer.bodyFile {
            files.append(spool.appendingPathComponent(body, isDirectory: false))
        }
        return files.map(AgentEffect.removeFile)
    }
}
