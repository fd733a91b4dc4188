import BackgroundLedger
import Foundation
import ProcessSupport

/// Detects commits of other processes to the ledger, and changes of files that an app specified.
///
/// Other programs may use all inotify instances or watches of the system. The agent then checks for changes at intervals, and
/// reports that it has no watch.
final class ChangeWatch {
    private let ledger: Ledger
    private let loop: EventLoop
    private let lock: AgentLock
    private var bell: ChangeListener?
    private var rate = NotificationRate()
    private var files: FileWatch?
    /// The paths that the app specified.
    private var paths: [String] = []
    /// The identities of the files, by path. A launch may have failed because of such a file, for example because of a wrong
    /// configuration.
    private var seen: [String: FileIdentity?] = [:]
    /// The date since which the system provides no watch. `nil` if the watch works.
    private var unwatchedSince: Date?

    /// The number of seconds between two checks of an agent that has no watch.
    private static let pollInterval = 5.0

    init(_ ledger: Ledger, _ loop: EventLoop, _ lock: AgentLock) { (self.ledger, self.loop, self.lock) = (ledger, loop, lock) }

    /// The date of the next check of an agent that has no watch. `nil` if the watch works.
    var nextCheckTime: Date? { unwatchedSince == nil ? nil : Date(timeIntervalSinceNow: Self.pollInterval) }

    /// Starts the watch if it is not running. The call takes little time if nothing changed.
    ///
    /// - Parameters:
    ///   - paths: the files that an app specified.
    ///   - filesChanged: called on the loop's thread after one of the files changed.
    func listen(to paths: [String], filesChanged: @escaping () -> Void) {
        let isNew = paths != self.paths
        if isNew {
            self.paths = paths
            seen = Dictionary(uniqueKeysWithValues: Set(paths).map { ($0, FileIdentity.behind($0)) })
        }
        guard isNew || bell == nil || unwatchedSince != nil else { return }
        do throws(StoreError) {
            if bell == nil {
                let new = try ChangeListener(ledger.directories)
                try loop.watch(new.descriptor) { [descriptor = new.descriptor, unowned self] in
                    ChangeListener.drain(descriptor)
                    guard rate.isTooHigh(afterRingAt: ProcessInfo.processInfo.systemUptime) else { return }
                    loop.hold(descriptor, atMost: NotificationRate.longestPause) { [unowned self] in
                        let rang = ChangeListener.drain(descriptor)
                        if rang { rate.record(ringAt: ProcessInfo.processInfo.systemUptime) }
                        return rang
                    }
                }
                bell = consume new
            }
            if isNew || unwatchedSince != nil { try watchFiles(filesChanged) }
            guard unwatchedSince != nil else { return }
            log.write(.changesHeard)
            unwatchedSince = nil
            lock.publish(nil)
        } catch {
            reportWatchFailure(error)
        }
        // The watch does not report changes that happened before this point, so the files are checked once.
        if check() { filesChanged() }
    }

    private func reportWatchFailure(_ error: StoreError) {
        if unwatchedSince == nil { log.write(.changesUnheard, (.reason, error), (.seconds, Int(Self.pollInterval))) }
        let since = unwatchedSince ?? Date()
        unwatchedSince = since
        lock.publish(AgentTrouble(reason: "\(error)", since: since, nextTry: Date(timeIntervalSinceNow: Self.pollInterval)))
    }

    private func watchFiles(_ filesChanged: @escaping () -> Void) throws(StoreError) {
        if let descriptor = files?.descriptor { loop.unwatch(descriptor) }
        files = nil
        guard !seen.isEmpty else { return }
        let watch = try FileWatch(paths)
        try loop.watch(watch.descriptor) { [descriptor = watch.descriptor, paths, unowned self] in
            ChangeListener.drain(descriptor)
            do throws(StoreError) { try FileWatch.arm(descriptor, paths) } catch { reportWatchFailure(error) }
            // The files are compared, because changes of other files in the folders also cause events.
            if check() { filesChanged() }
        }
        files = consume watch
    }

    /// Returns `true` if one of the files changed after the last check.
    private func check() -> Bool {
        let now = seen.keys.map { ($0, FileIdentity.behind($0)) }
        defer { seen = Dictionary(uniqueKeysWithValues: now) }
        return now.contains { seen[$0] != $1 }
    }

    private var log: AgentLog { AgentLog(ledger.directories) }
}
