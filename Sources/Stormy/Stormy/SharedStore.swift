import Foundation
import Synchronization

/// The store that all parts of one command use, so that the file is opened once.
package final class SharedStore: Sendable {
    /// The store of the running command, or `nil` if no command is running. If the value is `nil`, each part of Stormy opens the
    /// store itself.
    @TaskLocal package static var ofCommand: SharedStore?

    private struct Opened {
        let store: StormyStore
        let file: FileNumber
    }

    /// The identity of the file. The identity is compared, because another file with the same name is another store.
    private struct FileNumber: Equatable {
        let device: dev_t
        let inode: ino_t

        init?(_ path: String) {
            var information = stat()
            guard stat(path, &information) == 0 else { return nil }
            (device, inode) = (information.st_dev, information.st_ino)
        }
    }

    private let opened = Mutex<Opened?>(nil)

    package init() {}

    func store(in folder: URL) throws -> StormyStore {
        let path = folder.appendingPathComponent(StormyStore.fileName).path
        return try opened.withLock { opened in
            if let known = opened, FileNumber(path) == known.file { return known.store }
            let store = try StormyStore(folder: folder)
            // An exclusive connection is not shared. The connection prevents other processes from opening the store, so it is
            // closed as soon as possible.
            opened = store.isExclusive ? nil : FileNumber(path).map { Opened(store: store, file: $0) }
            return store
        }
    }
}
