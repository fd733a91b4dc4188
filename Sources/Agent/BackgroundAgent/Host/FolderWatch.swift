import BackgroundLedger
import CLinux
import Foundation
import ProcessSupport

/// Observes the folders that requests wait for, and reports the content of a folder after each change.
///
/// The kernel reports changes by inotify. The content is examined when no change was reported for some seconds, or after a minute
/// of changes. Network folders, and folders without a watch, are examined at intervals.
final class FolderWatch {
    /// The number of seconds without a change after which the content is examined.
    private static let quiet = 10.0
    /// The number of seconds of changes after which the content is examined.
    private static let longest = 60.0
    /// The number of seconds between two examinations of a folder whose changes the kernel does not report.
    private static let interval = 300.0

    /// An inotify instance. The instance is closed when neither this object nor a running examination needs it.
    private final class Instance: Sendable {
        let descriptor: Int32

        init?() {
            descriptor = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
            if descriptor < 0 { return nil }
        }

        deinit { if descriptor >= 0 { close(descriptor) } }

        /// `IN_ONLYDIR`, which Swift does not import.
        private static let foldersOnly: UInt32 = 0x0100_0000

        /// - Returns: `false` if the system has no free watch, or if the folder cannot be watched.
        func add(_ path: String) -> Bool {
            let mask = UInt32(
                IN_CLOSE_WRITE | IN_MODIFY | IN_ATTRIB | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF
                    | IN_MOVE_SELF)
            return inotify_add_watch(descriptor, path, mask | Self.foldersOnly) >= 0
        }

        /// Adds watches for the folders above a folder. The path leads to another folder if one of them is renamed or removed.
        func addFolders(above path: String) {
            var folder = path[...]
            while let slash = folder.lastIndex(of: "/"), slash > folder.startIndex {
                folder = folder[..<slash]
                // `IN_MASK_ADD` keeps the mask of a folder that is also watched itself.
                let mask = UInt32(IN_DELETE_SELF | IN_MOVE_SELF) | Self.foldersOnly | 0x2000_0000
                _ = inotify_add_watch(descriptor, String(folder), mask)
            }
        }
    }

    enum Report: Sendable {
        /// A folder changed, and its content is examined later.
        case changing
        case examined(WatchedFolder, FolderSignature.Finding)
    }

    private enum State {
        /// The folders are examined, and the kernel reports the next change.
        case waiting
        /// A change was reported at `since`. The reports are read at `nextLook`.
        case changing(since: Double, nextLook: Double)
    }

    private let loop: EventLoop
    private let report: @Sendable (Report) -> Void
    private var folders: Set<WatchedFolder> = []
    private var instance: Instance?
    /// The list of mounts. The descriptor is readable with priority after a change of the list.
    private var mounts: Int32 = -1
    private var state = State.waiting
    /// The time of the next examination of folders whose changes the kernel does not report.
    private var nextPoll: Double?
    /// `true` during an examination. Only one examination of all folders runs at a time.
    private var isExamining = false
    private var mustExamineAgain = false

    /// - Parameter report: Receives the reports. The function can be called on any thread.
    init(_ loop: EventLoop, report: @escaping @Sendable (Report) -> Void) {
        (self.loop, self.report) = (loop, report)
    }

    deinit { if mounts >= 0 { close(mounts) } }

    /// The date of the next examination, if the date is known.
    var nextCheckTime: Date? {
        var times = [nextPoll].compactMap { $0 }
        if case .changing(_, let next) = state { times.append(next) }
        return times.min().map { Date(timeIntervalSinceNow: max(0, $0 - Self.now)) }
    }

    /// Sets the folders, and examines folders whose examination is due. The call takes little time if nothing changed.
    func observe(_ wanted: Set<WatchedFolder>) {
        if wanted != folders {
            folders = wanted
            restart()
            return
        }
        if case .changing(let since, let nextLook) = state, nextLook <= Self.now {
            if drain(), Self.now - since < Self.longest {
                state = .changing(since: since, nextLook: Self.now + Self.quiet)
            } else {
                settle()
            }
        } else if let nextPoll, nextPoll <= Self.now {
            examine()
        }
    }

    /// Seconds since an arbitrary moment, not affected by changes of the clock.
    private static var now: Double {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    private func restart() {
        if let instance { loop.unwatch(instance.descriptor) }
        if mounts >= 0 {
            loop.unwatch(mounts)
            close(mounts)
            mounts = -1
        }
        (instance, state, nextPoll) = (nil, .waiting, nil)
        guard !folders.isEmpty else { return }
        instance = Instance()
        listen()
        mounts = clinux_open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC, 0)
        if mounts >= 0 { try? loop.watch(mounts, events: EPOLLPRI.rawValue) { [unowned self] in changed() } }
        examine()
    }

    private func listen() {
        guard let instance else { return }
        do throws(StoreError) { try loop.watch(instance.descriptor) { [unowned self] in changed() } } catch {
            self.instance = nil
        }
    }

    /// Handles the first report of a change. Further reports stay in the queue of the kernel until the next look. If the queue
    /// overflows, the content is examined in the same way.
    private func changed() {
        guard case .waiting = state else { return }
        if let instance { loop.unwatch(instance.descriptor) }
        drain()
        state = .changing(since: Self.now, nextLook: Self.now + Self.quiet)
        report(.changing)
    }

    /// `true` if the kernel reported a change that was not read yet.
    var hasReports: Bool {
        guard let instance else { return false }
        var looked = pollfd(fd: instance.descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&looked, 1, 0) > 0
    }

    private func settle() {
        state = .waiting
        listen()
        examine()
    }

    /// Reads the reports of changes.
    ///
    /// - Returns: `true` if there were reports.
    @discardableResult
    private func drain() -> Bool {
        guard let instance else { return false }
        var (buffer, hasAny) = ([UInt8](repeating: 0, count: 1 << 16), false)
        while read(instance.descriptor, &buffer, buffer.count) > 0 { hasAny = true }
        return hasAny
    }

    /// Examines all folders on another thread, because a large folder or a frozen file server takes time.
    private func examine() {
        nextPoll = nil
        guard !isExamining else {
            mustExamineAgain = true
            return
        }
        isExamining = true
        let (folders, instance, report, post) = (folders, instance, report, loop.poster)
        let done: @Sendable (Bool) -> Void = { [box = Weak(self)] mustPoll in
            post { box.value?.examined(folders, mustPoll: mustPoll) }
        }
        Thread.detachNewThread {
            var mustPoll = false
            for folder in folders {
                instance?.addFolders(above: folder.path)
                let finding = FolderSignature.compute(folder) { instance?.add($0) ?? false }
                if !finding.isReported { mustPoll = true }
                report(.examined(folder, finding))
            }
            done(mustPoll)
        }
    }

    private func examined(_ examined: Set<WatchedFolder>, mustPoll: Bool) {
        isExamining = false
        guard examined == folders, !mustExamineAgain else {
            mustExamineAgain = false
            if !folders.isEmpty { examine() }
            return
        }
        nextPoll = mustPoll ? Self.now + Self.interval : nil
    }

    /// A reference that other threads pass on.
    private final class Weak: @unchecked Sendable {  // because the reference is only used on the thread of the loop
        weak var value: FolderWatch?

        init(_ value: FolderWatch) { self.value = value }
    }
}
