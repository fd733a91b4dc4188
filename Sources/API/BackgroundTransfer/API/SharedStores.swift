import BackgroundRuntime
import Foundation
import FoundationNetworking

/// Cookies, cached answers and credentials of the default configurations: those of the process; on a test host the test's own.
///
/// Differs from Apple: Foundation keeps cookies below `$XDG_DATA_HOME` and answers below `$XDG_CACHE_HOME`, in folders named for the program. Both are
/// made so that nobody else can look into them.
final class SharedStores: Sendable {
    let cookies: HTTPCookieStorage
    let cache: URLCache
    let credentials: URLCredentialStorage

    static var current: SharedStores { AppRuntime.ofWork.part { SharedStores(isPrivate: AppRuntime.isOnTestHost) } }

    /// - Parameter isPrivate: nothing of it is kept on the disk, or shared with other sessions.
    init(isPrivate: Bool) {
        if isPrivate {
            let ephemeral = FoundationNetworking.URLSessionConfiguration.ephemeral
            cookies = ephemeral.httpCookieStorage ?? .shared
            cache = ephemeral.urlCache ?? .shared
            credentials = ephemeral.urlCredentialStorage ?? .shared
        } else {
            Self.makeFolders()
            (cookies, cache, credentials) = (.shared, .shared, .shared)
        }
    }

    private static func makeFolders() {
        let files = FileManager.default
        let program = (Bundle.main.bundlePath as NSString).lastPathComponent
        let name = (program as NSString).deletingPathExtension
        let folders = [
            files.urls(for: .applicationSupportDirectory, in: .userDomainMask).first?.appendingPathComponent(name),
            files.urls(for: .cachesDirectory, in: .userDomainMask).first?.appendingPathComponent("org.swift.foundation.URLCache"),
        ]
        for folder in folders.compactMap({ $0 }) {
            // Whoever cannot make it keeps nothing.
            try? files.createDirectory(at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        }
    }
}

/// A store of a configuration: the default one until another is chosen, or none.
struct ChosenStore<Store> {
    private var chosen: Store??
    private let byDefault: () -> Store?

    init(_ byDefault: @escaping () -> Store?) { self.byDefault = byDefault }

    var store: Store? {
        get { if let chosen { chosen } else { byDefault() } }
        set { chosen = .some(newValue) }
    }
}
