import Foundation
import Glibc
import ProcessSupport

/// A file by which the person's session starts something: a unit, or an autostart entry.
package enum StartingFile {
    /// The folders that an app was scheduled with, by the names of their variables: a session at the next login may set none of them.
    package static func folderVariables(_ environment: [String: String]) -> [(name: String, value: String)] {
        ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"].compactMap { name in environment[name].map { (name, $0) } }
    }

    /// Writes it as a whole, with the folders that it needs.
    package static func write(_ text: String, to url: URL) throws(StoreError) {
        try makeFolder(url.deletingLastPathComponent())
        do {
            try Data(text.utf8).write(to: url, options: .atomic)
        } catch {
            throw .cannotCreate(path: url.path, reason: (error as NSError).localizedDescription)
        }
        chmod(url.path, 0o644)
    }

    /// Nobody else may write there, whatever the umask of this process allows.
    static func makeFolder(_ url: URL) throws(StoreError) {
        do {
            try FileManager.default.createDirectory(
                at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
        } catch {
            throw .cannotCreate(path: url.path, reason: (error as NSError).localizedDescription)
        }
    }
}
