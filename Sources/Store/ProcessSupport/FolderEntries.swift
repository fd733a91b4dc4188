import Foundation
import Glibc

/// Reads the names of the entries of a folder.
///
/// Foundation is not used, because Foundation leaves out names that are not UTF-8 and reports no error.
package enum FolderEntries {
    /// Calls a closure with the name of each entry, except `.` and `..`. The order is the order of the file system.
    ///
    /// Cost: no memory for the list, so the folder can contain a million files.
    ///
    /// - Returns: the error number that ended the list, or 0 if the list is complete.
    package static func read(_ folder: String, _ body: ([UInt8]) -> Void) -> Int32 {
        guard let entries = opendir(folder) else { return errno }
        defer { closedir(entries) }
        while true {
            errno = 0
            guard let entry = readdir(entries) else { return errno }
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
            if name != [0x2E], name != [0x2E, 0x2E] { body(name) }
        }
    }
}
