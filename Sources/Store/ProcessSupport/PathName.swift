import Foundation
import Glibc

/// The name of a file or folder, compared byte by byte as the system does.
///
/// `String` compares characters. An "é" in one code point is equal to an "é" in two, but the two can be names of different files in one
/// folder.
package struct PathName: Hashable, Comparable, Sendable {
    package let bytes: [UInt8]

    package init(bytes: [UInt8]) { self.bytes = bytes }
    package init(_ path: String) { bytes = Array(path.utf8) }

    /// Returns the name of an entry of this folder.
    package func entry(_ name: [UInt8]) -> PathName {
        PathName(bytes: bytes + (bytes.last == Self.slash ? [] : [Self.slash]) + name)
    }

    /// The name as text. Bytes that are not UTF-8 are replaced.
    package var text: String { String(decoding: bytes, as: UTF8.self) }

    package static func < (first: PathName, second: PathName) -> Bool { first.bytes.lexicographicallyPrecedes(second.bytes) }

    /// Returns whether this is the folder or a path in the folder. Both are paths without links.
    package func isInside(_ folder: PathName) -> Bool {
        bytes.starts(with: folder.bytes) && (bytes.count == folder.bytes.count || bytes[folder.bytes.count] == Self.slash)
    }

    private static let slash = UInt8(ascii: "/")
    private static let dot = [UInt8(ascii: ".")]

    // MARK: Absolute paths

    /// Returns an absolute path of the same file. The path stays relative if the working folder does not exist.
    ///
    /// Foundation removes `..` as text. For the system `link/..` is the folder above the one that the link leads to, so `..` stays.
    package static func absolute(_ path: String, in folder: String? = nil) -> String {
        guard path.utf8.first != slash else { return withoutEmptyParts(path) }
        guard let folder = folder ?? workingFolder() else { return path }
        return withoutEmptyParts(folder + "/" + path)
    }

    /// Removes `.` and empty parts, which have no effect. At the end of a path they mark a folder.
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

    /// Returns the path without links; `nil` if nothing exists there.
    package static func resolved(_ path: String) -> PathName? {
        guard let resolved = realpath(path, nil) else { return nil }
        defer { free(resolved) }
        return PathName(bytes: UnsafeBufferPointer(start: resolved, count: strlen(resolved)).map { UInt8(bitPattern: $0) })
    }

    /// Returns one name for all paths of an entry of a folder, because links can lead to the folder. The entry can be gone.
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
    /// Makes the URL of a file or folder whose path can be relative and can have `..` in it.
    package init(exactPath path: String) { self.init(fileURLWithPath: PathName.absolute(path), isDirectory: false) }
}
