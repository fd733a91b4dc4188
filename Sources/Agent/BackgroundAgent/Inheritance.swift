import ProcessSupport
import BackgroundLedger
import BackgroundScheduling
import Foundation
import TransferMachines

/// What an earlier agent left, made up for in one transaction. Every effect can be derived again from the ledger.
struct Inheritance {
    /// Launches whose processes may live, to be adopted.
    private(set) var launches: [LaunchRecord] = []
    private(set) var effects: [AgentEffect] = []
    private var hasShownProgress = false

    static func take(from ledger: Ledger, version: String, now: Date) throws(StoreError) -> Inheritance {
        let directories = ledger.directories
        return try ledger.write { transaction in
            var left = Inheritance()
            try transaction.setFact(
                .agent,
                AgentRecord(pid: getpid(), version: version, startedAt: now, processStart: ProcessIdentity.current.start))
            for question in try transaction.openQuestions() where !question.isAwaited(in: directories) {
                try transaction.answer(question.id!, "error: nobody waits for it any more")
            }
            for var transfer in try transaction.transfersOfADeadAgent() {
                let before = transfer
                let commands = try transaction.handle(.agentDied(now: now), &transfer, now: now)
                left.effects += AgentEffect.removals(commands, of: before, in: directories.spool)
            }
            // An agent that died behind a commit may have left a part beside a person's file; those in the spool are found as orphans.
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
                // Changed content may wait while the old stands there.
                guard let number = notice.serverID, notice.state == .delivered || notice.state == .pending else { continue }
                left.effects.append(.takeOver(identifier: notice.identifier, serverID: number, of: server))
            }
            // Whoever listened for its end is gone; a server says anew whether it is on.
            try transaction.setFact(.doNotDisturbSince, nil)
            // Some docks forget a number with whoever told it.
            try transaction.setFact(.badgeTold, nil)
            let shown = try transaction.endedLaunchesStillShown()
            left.hasShownProgress = !shown.isEmpty
            left.effects += shown.compactMap { ProgressNotices.withdrawal(of: $0, server) }
            // Continued processing runs in a process of its own making, which is watched like any that waits.
            left.launches = try transaction.liveLaunches().filter { $0.kind != .continuedProcessing }
            return left
        }
    }

    /// After the effects: what was on the screen has been taken off.
    func settle(_ ledger: Ledger) throws(StoreError) {
        if hasShownProgress { try ledger.write { try $0.forgetEndedProgressNotices() } }
    }
}

extension AppDirectories {
    /// Removes files in the spool that no row knows, left by a process that died between file and row, or between row and file. Nobody
    /// living is between those while the lock is ours alone.
    ///
    /// A copy of a file to upload is not removed but put aside for a month: the ledger may have been moved away, or come from a backup,
    /// and the original be gone.
    ///
    /// - Returns: `false`: somebody was in the way, or a copy could not be put aside. It stays, and is looked at again.
    func removeOrphans(knownTo ledger: Ledger) -> Bool {
        // An uncleaned copy may lie there.
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

    /// After a month, and a week more in which they were known to be old: a clock that is ahead and then right removes nothing.
    ///
    /// A copy's modification time is when it was put aside, its access time when it was first found old.
    ///
    /// - Parameter now: seconds since 1970.
    func removeOldCopies(now: Int) {
        for name in (try? FileManager.default.contentsOfDirectory(atPath: leftCopies.path)) ?? [] {
            let path = leftCopies.appendingPathComponent(name).path
            var information = stat()
            guard lstat(path, &information) == 0 else { continue }
            let (putAside, foundOld) = (information.st_mtim.tv_sec, information.st_atim.tv_sec)
            let isOld = now - putAside > Int(Self.leftCopyRetention)
            let isNoted = foundOld > putAside && foundOld <= now
            switch (isOld, isNoted) {
            case (true, true): if now - foundOld > Self.weekOfDoubt { unlink(path) }
            case (true, false): Self.note(path, putAside: putAside, foundOld: now)
            case (false, _): if foundOld != putAside { Self.note(path, putAside: putAside, foundOld: putAside) }
            }
        }
    }

    private static let weekOfDoubt = 7 * 86_400

    private static func note(_ path: String, putAside: Int, foundOld: Int) {
        let times = [timespec(tv_sec: foundOld, tv_nsec: 0), timespec(tv_sec: putAside, tv_nsec: 0)]
        utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW)
    }

    private func remove(_ name: String) { unlink(spooled(name).path) }
}
