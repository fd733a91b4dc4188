import Foundation
import Glibc
import ProcessSupport

/// Functions for the files from which the user's session starts programs: units and autostart entries.
package enum StartingFile {
    /// Returns the environment variables that set the folders of the app. These variables are written into the unit or entry,
    /// because the session after the next login may not set them.
    package static func folderVariables(_ environment: [String: String]) -> [(name: String, value: String)] {
        ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"].compactMap { name in environment[name].map { (name, $0) } }
    }

    /// Writes a file in one step. Creates the folders of the file if they do not exist.
    package static func write(_ text: String, to url: URL) throws(StoreError) {
        try makeFolder(url.deletingLastPathComponent())
        do {
            try Data(text.utf8).write(to: url, options: .atomic)
        } catch {
            throw .cannotCreate(path: url.path, reason: (error as NSError).localizedDescription)
        }
        chmod(url.path, 0o644)
    }

    /// Creates a folder to which only this user can write, independent of the umask of this process. An existing folder keeps its
    /// permissions.
    static func makeFolder(_ url: URL) throws(StoreError) {
        do {
            try FileManager.default.createDirectory(
                at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
        } catch {
            throw .cannotCreate(path: url.path, reason: (error as NSError).localizedDescription)
        }
    }
}
