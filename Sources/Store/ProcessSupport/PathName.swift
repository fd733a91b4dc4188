import Foundation
import Glibc

/// The path of a file or folder. Like the system, this type compares paths byte by byte.
///
/// `String` is not used, because strings are compared by characters. For example, an "é" of one code point and an "é" of two code
/// points are equal strings. In a folder, these two strings can be the names of two different files.
package struct PathName: Hashable, Comparable, Sendable {
    package let bytes: [UInt8]

    package init(bytes: [UInt8]) { self.bytes = bytes }
    package init(_ path: String) { bytes = Array(path.utf8) }

    /// Returns the path of an entry of this folder.
    package func entry(_ name: [UInt8]) -> PathName {
        PathName(bytes: bytes + (bytes.last == Self.slash ? [] : [Self.slash]) + name)
    }

    /// The path as text. Bytes that are not UTF-8 are replaced by U+FFFD.
    package var text: String { String(decoding: bytes, as: UTF8.self) }

    package static func < (first: PathName, second: PathName) -> Bool { first.bytes.lexicographicallyPrecedes(second.bytes) }

    /// Returns whether this path is the folder or is inside the folder. The two paths must not contain links.
    package func isInside(_ folder: PathName) -> Bool {
        bytes.starts(with: folder.bytes) && (bytes.count == folder.bytes.count || bytes[folder.bytes.count] == Self.slash)
    }

    private static let slash = UInt8(ascii: "/")
    private static let dot = [UInt8(ascii: ".")]

    // MARK: Absolute paths

    /// Returns an absolute path of the same file. If the working folder does not exist, the path is returned unchanged.
    ///
    /// Foundation is not used, because Foundation removes `..` from the text of a path. `..` must be kept, because for the system
    /// `link/..` is the parent folder of the link's target.
    package static func absolute(_ path: String, in folder: String? = nil) -> String {
        guard path.utf8.first != slash else { return withoutEmptyParts(path) }
        guard let folder = folder ?? workingFolder() else { return path }
        return withoutEmptyParts(folder + "/" + path)
    }

    /// Removes the component `.` and empty components, because they have no effect. At the end of a path, such a component is
    /// kept, because it means that the path is a folder.
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

    /// Returns the path after all links are resolved, or `nil` if the path does not exist.
    package static func resolved(_ path: String) -> PathName? {
        guard let resolved = realpath(path, nil) else { return nil }
        defer { free(resolved) }
        return PathName(bytes: UnsafeBufferPointer(start: resolved, count: strlen(resolved)).map { UInt8(bitPattern: $0) })
    }

    /// Returns a unique path for an entry of a folder. Several paths can lead to the folder, because a path can contain links.
    /// The entry does not have to exist.
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
