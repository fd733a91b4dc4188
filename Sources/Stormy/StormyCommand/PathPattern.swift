import Foundation
import Glibc
import ProcessSupport

/// The files that match a pattern such as `card/*/*.jpg`, and the folders that could not be searched.
struct PathPattern {
    private(set) var paths: [String] = []
    /// The folders that could not be searched, with their error numbers.
    private(set) var unreadable: [PathName: Int32] = [:]

    /// Returns whether a text contains `*` or `?`. The character `[` alone does not make a pattern, because many file names
    /// contain this character. For example, `photo[1].jpg` is usually the name of a file, and not a pattern for `photo1.jpg`.
    static func isPattern(_ word: String) -> Bool { word.utf8.contains { $0 == UInt8(ascii: "*") || $0 == UInt8(ascii: "?") } }

    /// `GLOB_TILDE` is not used, because the shell replaces a `~` that is not quoted.
    init(_ pattern: String) {
        let pattern = Self.withoutRanges(pattern)
        var found = glob_t()
        defer { globfree(&found) }
        Self.report(to: &found)
        let search = Search()
        let result = Search.$current.withValue(search) { glob(pattern, GLOB_ALTDIRFUNC, nil, &found) }
        unreadable = search.unreadable
        guard result == 0 else { return }
        paths = (0..<Int(found.gl_pathc)).compactMap { found.gl_pathv[$0].map { String(cString: $0) } }
    }

    /// Escapes each `[` with a backslash. After a backslash, `glob` treats the character as a part of the name.
    private static func withoutRanges(_ pattern: String) -> String {
        var (bytes, isEscaped) = ([UInt8](), false)
        for byte in pattern.utf8 {
            if byte == UInt8(ascii: "["), !isEscaped { bytes.append(UInt8(ascii: "\\")) }
            bytes.append(byte)
            isEscaped = !isEscaped && byte == UInt8(ascii: "\\")
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Installs functions that record the errors of `glob`. Without these functions, `glob` reports a folder that cannot be
    /// opened, but does not report a path in a folder without search permission.
    private static func report(to found: inout glob_t) {
        found.gl_opendir = { path in
            let folder = opendir(path!)
            if let folder { Search.current?.open[folder] = String(cString: path!) } else { Search.record(path!) }
            return UnsafeMutableRawPointer(folder)
        }
        found.gl_readdir = { folder in
            errno = 0
            let folder = OpaquePointer(folder!)
            let entry = readdir(folder)
            if entry == nil, errno != 0 { Search.current?.record(Search.current?.open[folder] ?? "", errno) }
            return UnsafeMutableRawPointer(entry)
        }
        found.gl_closedir = { folder in
            Search.current?.open[OpaquePointer(folder!)] = nil
            closedir(OpaquePointer(folder!))
        }
        found.gl_stat = { path, information in
            Search.recordingErrors(path!, stat(path!, information!.assumingMemoryBound(to: stat.self)))
        }
        found.gl_lstat = { path, information in
            Search.recordingErrors(path!, lstat(path!, information!.assumingMemoryBound(to: stat.self)))
        }
    }

    /// The results of one call of `glob`. The functions that `glob` calls have no parameter for the results, so a task-local
    /// value contains the results.
    private final class Search: @unchecked Sendable {  // because one thread uses it
        @TaskLocal static var current: Search?

        var open: [OpaquePointer: String] = [:]
        private(set) var unreadable: [PathName: Int32] = [:]

        func record(_ path: String, _ number: Int32) {
            switch FileFault(number) {
            // While `glob` searches, it also tries paths that do not exist, and paths that are not folders. Paths of these kinds
            // are not errors.
            case .missing, .noFolder, .notAFile: break
            case .exists, .unsupported, .impossible, .noRoom, .notAllowed, .unavailable: unreadable[PathName(path)] = number
            }
        }

        static func record(_ path: UnsafePointer<CChar>) {
            let number = errno
            current?.record(String(cString: path), number)
            errno = number
        }

        static func recordingErrors(_ path: UnsafePointer<CChar>, _ result: Int32) -> Int32 {
            if result != 0 { record(path) }
            return result
        }
    }
}
