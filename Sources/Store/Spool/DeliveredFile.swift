import Foundation
import Glibc
import ProcessSupport

/// A second name (hard link) for the file of a finished download. The second name exists while the app receives the event of the
/// download.
///
/// If the app moves the file, the app moves only the second name. If the app is killed before the ledger has recorded the report,
/// the agent can therefore deliver the event again with the file. On a file system without hard links, the app receives the
/// original file.
package struct DeliveredFile {
    package let url: URL
    private let name: SpoolCopy?

    package init(_ file: URL, in directories: AppDirectories) {
        if let name = try? SpoolCopy("told-" + UUID.random().uuidString.lowercased(), in: directories),
            link(file.path, name.path) == 0
        {
            (url, self.name) = (URL(fileURLWithPath: name.path, isDirectory: false), name)
        } else {
            (url, name) = (file, nil)
        }
    }

    /// Removes the second name after the app has received the event. If the app has moved the file, the method does nothing.
    package func end() { name?.discard() }
}
