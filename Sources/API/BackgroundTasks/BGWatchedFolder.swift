import BackgroundLedger
import Foundation
import ProcessSupport

/// A folder whose changes launch a request (``BGTaskRequest/watchedFolders``). Apple's API has no equivalent.
public struct BGWatchedFolder: Hashable, Sendable {
    /// The folder. The folder does not have to exist yet.
    public let url: URL
    /// A Boolean value that indicates whether the folders inside the folder are also watched.
    public let isRecursive: Bool

    /// - Parameters:
    ///   - url: the file URL of a folder.
    ///   - isRecursive: `true` to also watch the folders inside the folder. The default is `false`.
    public init(_ url: URL, isRecursive: Bool = false) { (self.url, self.isRecursive) = (url, isRecursive) }

    init(_ folder: WatchedFolder) {
        self.init(URL(fileURLWithPath: folder.path, isDirectory: true), isRecursive: folder.isRecursive)
    }

    var record: WatchedFolder { WatchedFolder(path: PathName.absolute(url.path), isRecursive: isRecursive) }
}
