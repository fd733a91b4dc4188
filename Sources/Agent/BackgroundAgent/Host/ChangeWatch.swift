import BackgroundLedger
import Foundation
import ProcessSupport

/// Hears of what others commit to the ledger, and of files that an app named.
///
/// Where the system has no inotify instance or watch left (other programs use them up) the agent looks by itself, and says so.
final class ChangeWatch {
    private let ledger: Ledger
    private let loop: EventLoop
    private let lock: AgentLock
    private var bell: Bell?
    private var rate = RingRate()
    private var files: FileWatch?
    /// As the app named them.
    private var paths: [String] = []
    /// These paths, and what was found there. A launch may have failed for one of them: a configuration with a mistake, say.
    private var seen: [String: FileIdentity?] = [:]
    /// Since when the system gives nothing to hear with; `nil`: it does.
    private var deafSince: Date?

    /// Seconds between two looks of an agent that hears of nothing.
    private static let deafPause = 5.0

    init(_ ledger: Ledger, _ loop: EventLoop, _ lock: AgentLock) { (self.ledger, self.loop, self.lock) = (ledger, loop, lock) }

    /// When an agent that hears of nothing looks by itself; `nil`: it hears.
    var nextLook: Date? { deafSince == nil ? nil : Date(timeIntervalSinceNow: Self.deafPause) }

    /// Listens, if it does not yet. Cheap where nothing changed.
    ///
    /// - Parameters:
    ///   - paths: files that an app named.
    ///   - filesChanged: called on the loop's thread when one of them changed.
    func listen(to paths: [String], filesChanged: @escaping () -> Void) {
        let isNew = paths != self.paths
        if isNew {
            self.paths = paths
            seen = Dictionary(uniqueKeysWithValues: Set(paths).map { ($0, FileIdentity.behind($0)) })
        }
        guard isNew || bell == nil || deafSince != nil else { return }
        do throws(StoreError) {
            if bell == nil {
                let new = try Bell(ledger.directories)
                try loop.watch(new.descriptor) { [descriptor = new.descriptor, unowned self] in
                    Bell.drain(descriptor)
                    guard rate.isTooHigh(afterRingAt: ProcessInfo.processInfo.systemUptime) else { return }
                    loop.hold(descriptor, atMost: RingRate.longestPause) { [unowned self] in
                        let rang = Bell.drain(descriptor)
                        if rang { rate.note(ringAt: ProcessInfo.processInfo.systemUptime) }
                        return rang
                    }
                }
                bell = consume new
            }
            if isNew || deafSince != nil { try watchFiles(filesChanged) }
            guard deafSince != nil else { return }
            log.write(.changesHeard)
            deafSince = nil
            lock.tell(nil)
        } catch {
            hearNothing(error)
        }
        // Nothing rang while nothing was heard.
        if look() { filesChanged() }
    }

    private func hearNothing(_ error: StoreError) {
        if deafSince == nil { log.write(.changesUnheard, (.reason, error), (.seconds, Int(Self.deafPause))) }
        let since = deafSince ?? Date()
        deafSince = since
        lock.tell(AgentTrouble(reason: "\(error)", since: since, nextTry: Date(timeIntervalSinceNow: Self.deafPause)))
    }

    private func watchFiles(_ filesChanged: @escaping () -> Void) throws(StoreError) {
        if let descriptor = files?.descriptor { loop.unwatch(descriptor) }
        files = nil
        guard !seen.isEmpty else { return }
        let watch = try FileWatch(paths)
        try loop.watch(watch.descriptor) { [descriptor = watch.descriptor, paths, unowned self] in
            Bell.drain(descriptor)
            do throws(StoreError) { try FileWatch.arm(descriptor, paths) } catch { hearNothing(error) }
            // Their folders have other files, too.
            if look() { filesChanged() }
        }
        files = consume watch
    }

    /// Whether one of the files is another than at the last look.
    private func look() -> Bool {
        let now = seen.keys.map { ($0, FileIdentity.behind($0)) }
        defer { seen = Dictionary(uniqueKeysWithValues: now) }
        return now.contains { seen[$0] != $1 }
    }

    private var log: AgentLog { AgentLog(ledger.directories) }
}
