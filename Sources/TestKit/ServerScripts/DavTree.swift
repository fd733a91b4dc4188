import Foundation
import Glibc

/// The files of the store on disk: their names, kinds and tags, and the operations that change the files.
struct DavTree: Sendable {
    /// The kind of item at a path.
    enum Kind { case nothing, file, collection }

    private static let incoming = ".dav-incoming"
    private let root: String

    init(root: URL) throws {
        self.root = root.path
        try FileManager.default.createDirectory(
            atPath: "\(root.path)/\(Self.incoming)", withIntermediateDirectories: true)
    }

    /// Returns the place on disk of a decoded path. Returns `nil` if the path leaves the root or leads to the internal folder.
    func resolve(_ path: String) -> String? {
        let parts = path.split(separator: "/")
        guard !parts.contains(where: { $0 == ".." || $0 == "." || $0 == Self.incoming || $0.contains("\0") }) else {
            return nil
        }
        return ([root] + parts.map(String.init)).joined(separator: "/")
    }

    func kind(_ place: String) -> Kind {
        var isDirectory: ObjCBool = false
        guard FileManager.default.fileExists(atPath: place, isDirectory: &isDirectory) else { return .nothing }
        return isDirectory.boolValue ? .collection : .file
    }

    func hasParent(_ place: String) -> Bool {
        place == root || kind((place as NSString).deletingLastPathComponent) == .collection
    }

    /// Returns the size and a strong tag; `nil` if no item exists. A rename keeps the tag, and a new write changes the tag.
    func facts(_ place: String) -> (size: Int, etag: String)? {
        var info = stat()
        guard stat(place, &info) == 0 else { return nil }
        let time = info.st_mtim.tv_sec * 1_000_000_000 + info.st_mtim.tv_nsec
        let parts = [Int(info.st_ino), Int(info.st_size), time].map { String($0, radix: 16) }
        return (Int(info.st_size), "\"\(parts.joined(separator: "-"))\"")
    }

    /// Creates a new hidden file for an upload.
    func newUpload() -> String? {
        let place = "\(root)/\(Self.incoming)/\(UUID().uuidString)"
        return FileManager.default.createFile(atPath: place, contents: nil) ? place : nil
    }

    /// Moves a file or collection to a place. If an item exists at the place, it is replaced. A file is replaced atomically.
    func move(_ source: String, to destination: String) -> Bool {
        if kind(destination) == .collection { try? FileManager.default.removeItem(atPath: destination) }
        return rename(source, destination) == 0
    }

    func makeCollection(_ place: String) -> Bool { mkdir(place, 0o755) == 0 }

    func remove(_ place: String) -> Bool {
        place != root && (try? FileManager.default.removeItem(atPath: place)) != nil
    }

    /// Returns the names of the direct children of a collection.
    func children(_ place: String) -> [String] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: place)) ?? []
        return names.filter { $0 != Self.incoming }.sorted()
    }

    var files: [String] { files(below: root, path: "").sorted() }

    private func files(below place: String, path: String) -> [String] {
        children(place).flatMap { name in
            kind("\(place)/\(name)") == .collection
                ? files(below: "\(place)/\(name)", path: "\(path)/\(name)") : ["\(path)/\(name)"]
        }
    }

    var unfinishedUploads: Int {
        (try? FileManager.default.contentsOfDirectory(atPath: "\(root)/\(Self.incoming)"))?.count ?? 0
    }
}
