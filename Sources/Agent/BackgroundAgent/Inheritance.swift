import ProcessSupport
import BackgroundLedger
import BackgroundScheduling
import Foundation
import TransferMachines

/// Handles the unfinished operations of an earlier agent in a single transaction. Every effect is derived again from the ledger.
struct Inheritance {
    /// The launches whose processes may be alive. The new agent adopts these processes.
    private(set) var launches: [LaunchRecord] = []
    private(set) var effects: [AgentEffect] = []
    private var hasShownProgress = false

    static func read(from ledger: Ledger, version: String, now: Date) throws(StoreError) -> Inheritance {
        let directories = ledger.directories
        return try ledger.write { transaction in
            var left = Inheritance()
            try transaction.setFact(
                .agent,
                AgentRecord(pid: getpid(), version: version, startedAt: now, processStart: ProcessIdentity.current.start))
            for question in try transaction.openQuestions() where !question.isAwaited(in: directories) {
                try transaction.answer(question.id!, "error: the process that waited for the response has ended")
            }
            for var transfer in try transaction.transfersOfADeadAgent() {
                let before = transfer
                let commands = try transaction.handle(.agentDied(now: now), &transfer, now: now)
                left.effects += AgentEffect.removals(commands, of: before, in: directories.spool)
            }
            // An agent that was killed after a commit may have left a partial file next to the user's file.
            // ``removeOrphans(knownTo:)`` removes partial files in the spool.
            for place in try transaction.partsBesideDestinations() {
                left.effects += [.removeFile(place.url), .removeFile(place.other.url)]
            }
            let server = try transaction.fact(.notificationServer)
            for var notice in try transaction.notifications() {
                if notice.state == .presenting || notice.state == .withdrawing
                    || (notice.state == .withdrawn || notice.state == .over) && notice.life.mayStand
                {
                    notice.handle(.agentDied)
                    try transaction.save(notice)
                }
                if let number = notice.leavingID {
                    left.effects.append(.withdraw(identifier: notice.identifier, serverID: number, of: server))
                }
                // While a notification is pending, its earlier content may be on the screen.
                guard let number = notice.serverID, notice.state == .delivered || notice.state == .pending else { continue }
                left.effects.append(.adoptNotification(identifier: notice.identifier, serverID: number, of: server))
            }
            // The agent that waited for the end of do-not-disturb does not run any more. The notification server reports again
            // whether do-not-disturb is on.
            try transaction.setFact(.doNotDisturbSince, nil)
            // A dock may forget the badge number after the process that sent the number ended.
            try transaction.setFact(.badgeTold, nil)
            let shown = try transaction.endedLaunchesStillShown()
            left.hasShownProgress = !shown.isEmpty
            left.effects += shown.compactMap { ProgressNotices.withdrawal(of: $0, server) }
            // Continued processing runs in a process that the user started. The agent watches this process like a process that
            // awaits a transfer.
            left.launches = try transaction.liveLaunches().filter { $0.kind != .continuedProcessing }
            return left
        }
    }

    /// Records that the withdrawn progress notifications are not on the screen any more. Call this method after the effects were
    /// performed.
    func finish(_ ledger: Ledger) throws(StoreError) {
        if hasShownProgress { try ledger.write { try $0.forgetEndedProgressNotices() } }
    }
}

extension AppDirectories {
    /// Removes files in the spool that have no row. A process that died after it wrote the file and before it wrote the row
    /// leaves such a file. The method holds the lock exclusively, so no other process is between these two steps.
    ///
    /// A copy of a file to upload is not removed, but kept in another folder for a month. The reason is that the ledger may have
    /// been moved away or restored from a backup, and the user may have deleted the original.
    ///
    /// - Returns: `false` if another process prevented the removal, or if a copy could not be moved. The files that were not
    ///   removed or moved are checked again later.
    func removeOrphans(knownTo ledger: Ledger) -> Bool {
        // A crash may have left a copy of a photo from which the location was not removed yet.
        for place in [spool, state] { HeldFolder.removeAbandoned(prefix: HeldFolder.cleaning, in: place) }
        var isDone = true
        let wasAlone = withUnknownFiles(of: ledger) { names in
            for name in names {
                if !name.hasPrefix(Self.copyPrefix) { remove(name) } else if !putAside(name) { isDone = false }
            }
            removeOldCopies(now: time(nil))
        }
        return wasAlone && isDone
    }

    /// Removes copies that are older than a month. A copy is removed only if its age was first detected more than a week ago. For
    /// this reason, no copy is removed if the clock is wrong only for a short time.
    ///
    /// The modification time of a copy is the time at which the copy was moved into this folder. The access time is the time at
    /// which the age was first detected.
    ///
    /// - Parameter now: the seconds since 1970.
    func removeOldCopies(now: Int) {
        for name in (try? FileManager.default.contentsOfDirectory(atPath: leftCopies.path)) ?? [] {
            let path = leftCopies.appendingPathComponent(name).path
            var information = stat()
            guard lstat(path, &information) == 0 else { continue }
            let (putAside, foundOld) = (information.st_mtim.tv_sec, information.st_atim.tv_sec)
            let isOld = now - putAside > Int(Self.leftCopyRetention)
            let isMarkedOld = foundOld > putAside && foundOld <= now
            switch (isOld, isMarkedOld) {
            case (true, true): if now - foundOld > Self.weekOfDoubt { unlink(path) }
            case (true, false): Self.log(path, putAside: putAside, foundOld: now)
            case (false, _): if foundOld != putAside { Self.log(path, putAside: putAside, foundOld: putAside) }
            }
        }
    }

    private static let weekOfDoubt = 7 * 86_400

    private static func log(_ path: String, putAside: Int, foundOld: Int) {
        let times = [timespec(tv_sec: foundOld, tv_nsec: 0), timespec(tv_sec: putAside, tv_nsec: 0)]
        utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW)
    }

    private func remove(_ name: String) { unlink(spooled(name).path) }
}
