import BackgroundRuntime
import Foundation
import FoundationNetworking
import Synchronization

/// Cookies, cached answers and credentials of the default configurations: those of the process; on a test host the test's own.
///
/// Differs from Apple: Foundation keeps cookies below `$XDG_DATA_HOME` in a folder named for the program's own folder (`bin`): programs that lie in one
/// folder share them. Whoever wants none of that gives a configuration a storage of its own. Answers are below `$XDG_CACHE_HOME`, by the program's name.
/// After each answer that sets cookies nobody else may read their file.
///
/// Cookies and cache are made at their first use, because Foundation makes their folders with them.
final class SharedStores: Sendable {
    private struct Made {
        var cookies: HTTPCookieStorage?
        var cache: URLCache?
    }

    private let isPrivate: Bool
    private let made = Mutex(Made())
    let credentials: URLCredentialStorage

    static var current: SharedStores { AppRuntime.ofWork.part { SharedStores(isPrivate: AppRuntime.isOnTestHost) } }

    /// - Parameter isPrivate: nothing of it is kept on the disk, or shared with other sessions.
    init(isPrivate: Bool) {
        self.isPrivate = isPrivate
        credentials = isPrivate ? URLCredentialStorage() : .shared
    }

    var cookies: HTTPCookieStorage {
        made.withLock { made in
            if let cookies = made.cookies { return cookies }
            let cookies = isPrivate ? Self.makeCookiesInMemory() : HTTPCookieStorage.shared
            made.cookies = cookies
            return cookies
        }
    }

    var cache: URLCache {
        made.withLock { made in
            if let cache = made.cache { return cache }
            if !isPrivate { Self.makePrivateCache() }
            let cache = isPrivate ? Self.makeCacheInMemory() : URLCache.shared
            made.cache = cache
            return cache
        }
    }

    /// Only a configuration of Foundation's has such a store. It makes the folders of the shared stores, too.
    private static func makeCookiesInMemory() -> HTTPCookieStorage {
        FoundationNetworking.URLSessionConfiguration.ephemeral.httpCookieStorage ?? .shared
    }

    private static func makeCacheInMemory() -> URLCache {
        // Foundation makes the folder of every cache. Below a file it cannot, and keeps answers in memory alone.
        URLCache(memoryCapacity: 4 << 20, diskCapacity: 0, diskPath: "/dev/null/answers")
    }

    private static let program = ((Bundle.main.bundlePath as NSString).lastPathComponent as NSString).deletingPathExtension

    /// In a folder of this program's own, unless the app has chosen another.
    private static func makePrivateCache() {
        let files = FileManager.default
        guard let caches = files.urls(for: .cachesDirectory, in: .userDomainMask).first else { return }
        let name = ProcessInfo.processInfo.processName
        let folder = caches.appendingPathComponent(name).appendingPathComponent("answers")
        // Whoever cannot make it keeps nothing on the disk.
        try? files.createDirectory(at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let current = URLCache.shared
        guard chmod(folder.path, 0o700) == 0, current.memoryCapacity == 4 << 20, current.diskCapacity == 20 << 20 else { return }
        URLCache.shared = URLCache(memoryCapacity: 4 << 20, diskCapacity: 20 << 20, diskPath: folder.path)
    }

    /// Foundation writes the file anew with each cookie, for everybody to read.
    static func hideCookies() {
        guard let support = FileManager.default.urls(for: .applicationSupportDirectory, in: .userDomainMask).first else { return }
        chmod(support.appendingPathComponent(program).appendingPathComponent(".cookies.shared").path, 0o600)
    }
}

/// A store of a configuration: the default one until another is chosen, or none.
struct ChosenStore<Store> {
    private var chosen: Store??
    private let byDefault: () -> Store?

    init(_ byDefault: @escaping () -> Store?) { self.byDefault = byDefault }

    /// The store that it is now, whoever asks later.
    var resolved: ChosenStore {
        var copy = self
        copy.store = store
        return copy
    }

    var store: Store? {
        get { if let chosen { chosen } else { byDefault() } }
        set { chosen = .some(newValue) }
    }
}
