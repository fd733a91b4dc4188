import BackgroundRuntime
import Foundation
import ProcessSupport

/// Where this app keeps its configuration, passwords, records and copies. Nothing in them is a photo of the person's, and none of it is
/// opened to find out: closing a database's file takes away the locks that this process has on it.
package struct OwnFolders: Sendable {
    private let paths: [String]

    package init(_ directories: AppDirectories = AppRuntime.shared.directories) {
        paths = [directories.configuration, directories.state, directories.data].compactMap { Self.resolved($0.path) }
    }

    /// Whatever links lead there. Cost: one look at each folder of the path.
    package func contain(_ path: String) -> Bool {
        guard let path = Self.resolved(path) else { return false }
        return paths.contains { path == $0 || path.hasPrefix($0 + "/") }
    }

    private static func resolved(_ path: String) -> String? {
        guard let resolved = realpath(path, nil) else { return nil }
        defer { free(resolved) }
        return String(cString: resolved)
    }
}
