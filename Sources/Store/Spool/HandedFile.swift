import Foundation
import Glibc
import ProcessSupport

/// The file of a finished download under a name of its own, while an app is told of it.
///
/// An app moves the file it is told of. If it then dies before the ledger knows that it was told, it is told again: of the same file,
/// as what it moved was only this name. On a file system without hard links the app gets the file itself.
package struct HandedFile {
    package let url: URL
    private let name: SpoolCopy?

    package init(_ file: URL, in directories: AppDirectories) {
        if let name = try? SpoolCopy("told-" + UUID().uuidString.lowercased(), in: directories), link(file.path, name.path) == 0 {
            (url, self.name) = (URL(fileURLWithPath: name.path, isDirectory: false), name)
        } else {
            (url, name) = (file, nil)
        }
    }

    /// The app has been told. What it did not move goes.
    package func end() { name?.discard() }
}
