import BackgroundRuntime
import Foundation
import FoundationNetworking
import Synchronization

/// The stores of cookies, cached responses and credentials that the default configurations use. A process has one set of stores.
/// On a test host, each test has its own set.
///
/// Differs from Apple: Foundation stores cookies below `$XDG_DATA_HOME`, in a folder with the name of the program's folder
/// (`bin`). Programs in the same folder therefore share their cookies. To prevent this, an app can set another cookie storage in
/// its configuration. Responses are stored below `$XDG_CACHE_HOME`, in a folder with the program's name. After each response that
/// sets cookies, the permissions of the cookie file are set so that other users cannot read it.
///
/// The stores for cookies and responses are created at first use, because Foundation then creates the folders of these stores.
final class SharedStores: Sendable {
    private struct Made {
        var cookies: HTTPCookieStorage?
        var cache: URLCache?
    }

    private let isPrivate: Bool
    private let made = Mutex(Made())
    let credentials: URLCredentialStorage

    static var current: SharedStores { AppRuntime.ofWork.part { SharedStores(isPrivate: AppRuntime.isOnTestHost) } }

    /// - Parameter isPrivate: `true` if the stores write nothing to the disk and are not shared with other sessions.
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

    /// Returns a cookie storage in memory. The storage comes from a configuration of Foundation, because an app cannot create
    /// such a storage directly. As a side effect, Foundation creates the folders of the shared stores.
    private static func makeCookiesInMemory() -> HTTPCookieStorage {
        FoundationNetworking.URLSessionConfiguration.ephemeral.httpCookieStorage ?? .shared
    }

    private static func makeCacheInMemory() -> URLCache {
        // Foundation creates a folder for every cache. This path is below a file, so the folder cannot be created, and Foundation
        // stores responses in memory only.
        URLCache(memoryCapacity: 4 << 20, diskCapacity: 0, diskPath: "/dev/null/answers")
    }

    private static let program = ((Bundle.main.bundlePath as NSString).lastPathComponent as NSString).deletingPathExtension

    /// Replaces the shared cache with a cache in this program's folder. If the app has set another cache, the method does
    /// nothing.
    private static func makePrivateCache() {
        let files = FileManager.default
        guard let caches = files.urls(for: .cachesDirectory, in: .userDomainMask).first else { return }
        let name = ProcessInfo.processInfo.processName
        let folder = caches.appendingPathComponent(name).appendingPathComponent("answers")
        // If the folder cannot be created, the cache is not replaced.
        try? files.createDirectory(at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let current = URLCache.shared
        guard chmod(folder.path, 0o700) == 0, current.memoryCapacity == 4 << 20, current.diskCapacity == 20 << 20 else { return }
        URLCache.shared = URLCache(memoryCapacity: 4 << 20, diskCapacity: 20 << 20, diskPath: folder.path)
    }

    /// Makes the cookie file unreadable for other users. Foundation writes the file again each time that a cookie is stored.
    /// After each such write, all users can read the file, so this method must be called again.
    static func hideCookies() {
        guard let support = FileManager.default.urls(for: .applicationSupportDirectory, in: .userDomainMask).first else { return }
        chmod(support.appendingPathComponent(program).appendingPathComponent(".cookies.shared").path, 0o600)
    }
}

/// The store that a configuration uses: the default store, until the app sets another store or `nil`.
struct ChosenStore<Store> {
    private var chosen: Store??
    private let byDefault: () -> Store?

    init(_ byDefault: @escaping () -> Store?) { self.byDefault = byDefault }

    /// A copy that contains the current store. If the default store changes later, the copy is not affected.
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
