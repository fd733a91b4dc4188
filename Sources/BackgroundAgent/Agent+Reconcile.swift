import BackgroundLedger
import BackgroundScheduling
import CLinux
import Foundation

// What a new agent does first: everything an earlier one left is adopted, made up for, or tidied away.
extension Agent {
    package func reconcile(version: String) throws(LedgerError) {
        let adopted = try ledger.write { transaction in
            try transaction.setFact(
                .agent,
                AgentRecord(
                    pid: getpid(), version: version, startedAt: now(), processStart: ProcessIdentity.current.start))
            for question in try transaction.openQuestions() {
                if !question.isAwaited {
                    try transaction.answer(question.id!, "error: nobody waits for it any more")
                }
            }
            for var transfer in try transaction.transfersOfADeadAgent() {
                let before = transfer
                let commands = try transaction.handle(.agentDied(now: now()), &transfer, now: now())
                if commands.contains(.removeFiles) { removeFiles(of: before) }
                if commands.contains(.removeBody), let body = before.bodyFile {
                    unlink(ledger.directories.spool.appendingPathComponent(body).path)
                }
            }
            for var notice in try transaction.notifications() where notice.state == .presenting {
                // Shown or not, the earlier agent could not say. Shown again it replaces itself where a server can.
                notice.state = .pending
                try transaction.save(notice)
            }
            return try transaction.liveLaunches()
        }
        let leftOver = try ledger.read { try $0.endedLaunchesStillShown() }
        if !leftOver.isEmpty {
            for launch in leftOver { withdrawLeftOver(launch) }
            try ledger.write { try $0.forgetEndedProgressNotices() }
        }
        // Continued processing runs in a process of its own making, which is watched like any that waits.
        for launch in adopted where launch.kind != .continuedProcessing { adopt(launch) }
        removeOrphans()
    }

    private func adopt(_ launch: LaunchRecord) {
        let id = launch.id!
        if launcher.isAlive(id) {
            if let pid = launch.pid {
                if launcher.adopt(id, pid: pid) {
                    log.note("adopted launch \(id) of \(launch.identifier), pid \(pid)")
                    return
                }
            } else {
                // Started, but its number was not committed: the process itself writes it when it begins.
                awaitingPID.insert(id)
                return
            }
        }
        hear(.launchEnded(id, .unknown))
    }

    /// A launch whose process has by now said who it is.
    func adoptLateLaunches(_ pass: inout Pass) throws {
        for id in awaitingPID {
            guard let launch = try pass.transaction.launch(id), launch.endedAt == nil else {
                awaitingPID.remove(id)
                continue
            }
            if launch.pid == nil, launcher.isAlive(id) {
                // Its lock goes with it; nothing rings then, so look again.
                pass.wake(at: pass.now.addingTimeInterval(1))
                continue
            }
            awaitingPID.remove(id)
            if let pid = launch.pid, launcher.adopt(id, pid: pid) { continue }
            endedLaunches[id] = .unknown
        }
    }

    /// Seconds after which it looks again, where somebody was putting files there.
    private static let orphanPatience: Double = 3_600

    /// Files in the spool that no row knows, left by a process that died between file and row, or between row and file. Nobody
    /// living is between those while the lock is ours alone.
    func removeOrphans() {
        guard let lock = try? FileLock.acquire(ledger.directories.spoolLock) else {
            orphansDue = monotonic() + Self.orphanPatience
            return
        }
        defer { extendLifetime(lock) }
        guard let known = try? ledger.read({ try $0.spoolFiles() }),
            let names = try? FileManager.default.contentsOfDirectory(atPath: ledger.directories.spool.path)
        else { return }
        for name in names where !known.contains(name) && TransferRecord.isPlainName(name) {
            unlink(ledger.directories.spool.appendingPathComponent(name).path)
        }
    }

    /// An agent may live for months, or leave before the hour is over.
    func planOrphans(_ pass: inout Pass) {
        // A newer version's rows may name more than this one knows.
        guard let due = orphansDue, !isDraining else { return }
        let left = isFinished ? 0 : due - monotonic()
        guard left <= 0 else { return pass.wake(at: pass.now.addingTimeInterval(left)) }
        orphansDue = nil
        pass.effects.append(.removeOrphans)
    }
}
