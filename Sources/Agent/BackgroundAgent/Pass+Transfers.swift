import BackgroundLedger
import Foundation
import TransferMachines

// This file contains the rules by which a transfer waits, fails and ends. All parts of the agent use these rules.
extension Pass {
    /// Ends a transfer: changes the row, creates the event for the app, and removes files that are not needed any more.
    mutating func end(
        _ transfer: inout TransferRecord, as outcome: TransferLife.Outcome, _ reason: TransferLife.Reason? = nil
    ) throws {
        let before = transfer
        let commands = try transaction.handle(.ended(outcome, reason, now: now), &transfer, now: now)
        remove(commands, of: before)
        // A new version of the file may have begun without a commit, and may have left a second partial file with another name.
        if outcome == .completed, let other = before.partPlace(in: spool)?.other {
            perform(.removeFile(other.url))
        }
        // A notification that transfers to this server wait is outdated after the transfer is complete.
        if outcome == .completed, before.errorCode != nil { try retract { AgentNotice.suspects($0, host: before.host) } }
        recordEndedTransfer(before)
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

    /// Fails a transfer if its file cannot be opened and so no bytes were sent.
    mutating func failWithoutSource(_ transfer: inout TransferRecord, _ trouble: FileTrouble) throws {
        var trouble = trouble
        // A copy that is missing in its original folder can never be sent. If the agent now uses another folder as its spool, the
        // copy may be available later.
        if trouble == .queuedCopyIsGone, transfer.bodyFile != nil, try !transaction.knows(spool: spool) {
            trouble = .queuedCopyIsElsewhere(spool)
        }
        guard trouble.isPassing else { return try fail(&transfer, .fileDoesNotExist, trouble.why) }
        try wait(&transfer, for: Self.diskPause, .disk(trouble, .cannotOpenFile))
    }

    /// Makes the transfer wait for a later try.
    mutating func wait(_ transfer: inout TransferRecord, for seconds: Double, _ trouble: TransferTrouble) throws {
        let until = now.addingTimeInterval(seconds)
        try transaction.handle(.waits(until: until, TransferLife.Reason(trouble)), &transfer, now: now)
        log(.transferWaits, (.transfer, transfer.id ?? 0), (.seconds, Int(seconds.rounded(.up))), (.reason, trouble.message))
    }

    /// The number of seconds after which a file that cannot be used is tried again.
    static let diskPause: Double = 60

    /// Handles a problem with the local disk. After a temporary problem, the transfer is retried until it made no progress for
    /// too long (``Attempts``).
    mutating func failLocally(
        _ transfer: inout TransferRecord, _ trouble: FileTrouble, pause: Double = diskPause
    ) throws {
        // If a retry would send the transfer again although it must not be repeated, the transfer fails.
        guard trouble.isPassing, transfer.mayBeRepeated || transfer.isFinishing else {
            return try fail(&transfer, .cannotWriteToFile, trouble.why)
        }
        try wait(&transfer, for: pause, .disk(trouble, .cannotWriteToFile))
    }

    /// Removes the files that are not needed any more after an event of a transfer.
    ///
    /// - Parameter before: the row before the event, which contains the names of the files.
    mutating func remove(_ commands: [TransferLife.Command], of before: TransferRecord) {
        for effect in AgentEffect.removals(commands, of: before, in: spool) { perform(effect) }
    }
}

extension TransferTrouble {
    static func disk(_ trouble: FileTrouble, _ code: URLError.Code) -> TransferTrouble {
        TransferTrouble(code: code.rawValue, message: "The transfer waits for the disk: \(trouble.why)")
    }
}

extension AgentEffect {
    /// Returns effects that remove the files that are not needed any more after an event of a transfer.
    ///
    /// - Parameter transfer: the row before the event, which contains the names of the files.
    static func removals(_ commands: [TransferLife.Command], of transfer: TransferRecord, in spool: URL) -> [AgentEffect] {
        var files: [URL] = []
        if commands.contains(.removeFiles) { files += transfer.remains(in: spool) }
        if commands.contains(.removeBody), let body = transfer.bodyFile {
            files.append(spool.appendingPathComponent(body, isDirectory: false))
        }
        return files.map(AgentEffect.removeFile)
    }
}
