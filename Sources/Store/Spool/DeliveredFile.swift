import Foundation
import Glibc
import ProcessSupport

/// A second name (hard link) for the file of a finished download, while the end of the download is reported to an app.
///
/// The app may move the file, but it moves only the second name. So if the app is killed before the ledger has recorded the
/// report, the end is reported again with the same file. On a file system without hard links, the app receives the file itself.
package struct DeliveredFile {
    package let url: URL
    private let name: SpoolCopy?

    package init(_ file: URL, in directories: AppDirectories) {
        if let name = try? SpoolCopy("told-" + UUID().uuidString.lowercased(), in: directories), link(file.path, name.path) == 0 {
            (url, self.name) = (URL(fileURLWithPath: name.path, isDirectory: false), name)
        } else {
            (url, name) = (file, nil)
        }
    }

    /// Removes the second name after the report, if the app did not move it.
    package func end() { name?.discard() }
}
