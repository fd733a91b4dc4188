import Foundation
import Glibc

/// The path of a file or folder. Paths are compared byte by byte, as the system compares them.
///
/// `String` is not used, because a `String` is compared by characters. An "é" of one code point is equal to an "é" of two code
/// points, but both can be names of different files in one folder.
package struct PathName: Hashable, Comparable, Sendable {
    package let bytes: [UInt8]

    package init(bytes: [UInt8]) { self.bytes = bytes }
    package init(_ path: String) { bytes = Array(path.utf8) }

    /// Returns the path of an entry of this folder.
    package func entry(_ name: [UInt8]) -> PathName {
        PathName(bytes: bytes + (bytes.last == Self.slash ? [] : [Self.slash]) + name)
    }

    /// The path as text. Bytes that are not UTF-8 are replaced.
    package var text: String { String(decoding: bytes, as: UTF8.self) }

    package static func < (first: PathName, second: PathName) -> Bool { first.bytes.lexicographicallyPrecedes(second.bytes) }

    /// Returns whether this path is the folder or is in the folder. Both paths must contain no links.
    package func isInside(_ folder: PathName) -> Bool {
        bytes.starts(with: folder.bytes) && (bytes.count == folder.bytes.count || bytes[folder.bytes.count] == Self.slash)
    }

    private static let slash = UInt8(ascii: "/")
    private static let dot = [UInt8(ascii: ".")]

    // MARK: Absolute paths

    /// Returns an absolute path of the same file. The path stays relative if the working folder does not exist.
    ///
    /// Foundation is not used, because it removes `..` from the text of a path. For the system, `link/..` is the parent of the
    /// link's target, so `..` is kept.
    package static func absolute(_ path: String, in folder: String? = nil) -> String {
        guard path.utf8.first != slash else { return withoutEmptyParts(path) }
        guard let folder = folder ?? workingFolder() else { return path }
        return withoutEmptyParts(folder + "/" + path)
    }

    /// Removes `.` and empty parts inside the path, because they have no effect. At the end of a path, such a part means that the
    /// path is a folder.
    private static func withoutEmptyParts(_ path: String) -> String {
        let parts = path.utf8.split(separator: slash, omittingEmptySubsequences: false)
        let isFolder = parts.last.map { $0.isEmpty || $0.elementsEqual(dot) } ?? false
        let named = parts.filter { !$0.isEmpty && !$0.elementsEqual(dot) }
        return (named + (isFolder ? [Substring(".").utf8] : [])).map { "/" + String(Substring($0)) }.joined()
    }

    private static func workingFolder() -> String? {
        guard let path = getcwd(nil, 0) else { return nil }
        defer { free(path) }
        return String(cString: path)
    }

    // MARK: Names of one file

    /// Returns the path without links, or `nil` if the path does not exist.
    package static func resolved(_ path: String) -> PathName? {
        guard let resolved = realpath(path, nil) else { return nil }
        defer { free(resolved) }
        return PathName(bytes: UnsafeBufferPointer(start: resolved, count: strlen(resolved)).map { UInt8(bitPattern: $0) })
    }

    /// Returns the same path for all paths of one entry of a folder, because links can lead to the folder. The entry does not
    /// have to exist.
    package static func canonical(_ path: String) -> PathName {
        let bytes = Array(absolute(path).utf8)
        let end = bytes.lastIndex(of: slash) ?? 0
        let (folder, name) = (bytes[..<end], bytes[end...].dropFirst())
        if name.elementsEqual("..".utf8) || name.elementsEqual(dot) { return resolved(path) ?? PathName(bytes: bytes) }
        let place = end == 0 ? PathName("/") : resolved(String(decoding: folder, as: UTF8.self)) ?? PathName(bytes: Array(folder))
        return place.entry(Array(name))
    }
}

extension URL {
    /// Creates the URL of a file or folder. The path can be relative and can contain `..`.
    package init(exactPath path: String) { self.init(fileURLWithPath: PathName.absolute(path), isDirectory: false) }
}
