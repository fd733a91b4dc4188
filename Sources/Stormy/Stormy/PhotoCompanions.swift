import Foundation
import Glibc
import ProcessSupport
import TransferMachines

/// Finds the files that belong to photos: the video of a Live Photo, and sidecars (XMP files, and the JSON files of Google
/// Photos).
package struct PhotoCompanions {
    private let destination: PhotoDestination
    private let keepsLocation: Bool
    /// The videos of a folder.
    private struct Videos {
        var paths: [String] = []
        /// The paths by the content identifiers. `nil` if the videos were not read yet.
        var byIdentifier: [String: String]?
    }

    private var videos: [String: Videos] = [:]

    package init(_ destination: PhotoDestination, _ location: LocationDecision) {
        (self.destination, keepsLocation) = (destination, location.keeps)
    }

    /// Returns groups of files that belong together, in the order of the files. The first file of a group is a photo, and the
    /// other files belong to this photo.
    ///
    /// Cost: about ten system calls for each photo, and the bytes of its metadata are read.
    package mutating func groups(of files: [PhotoFile]) -> [[PhotoFile]] {
        guard !destination.isForOneFile else { return files.map { [$0] } }
        var (groups, companions): ([[PhotoFile]], Set<PathName>) = ([], [])
        let named = Set(files.map { PathName(PathName.absolute($0.path)) })
        for file in files {
            if let photo = photo(ofVideo: file.path), !named.contains(PathName(PathName.absolute(photo))) {
                groups.append(group(of: PhotoFile(path: photo, isKnownPhotoOnly: false)))
            } else {
                groups.append(group(of: file))
            }
            companions.formUnion(groups[groups.count - 1].dropFirst().map { PathName(PathName.absolute($0.path)) })
        }
        var added: Set<PathName> = []
        return groups.compactMap { group in
            guard let first = group.first, group.count > 1 || !companions.contains(PathName(PathName.absolute(first.path))) else {
                return nil
            }
            // A sidecar such as `a.xmp` belongs to both `a.raw` and `a.jpg`, but is sent once.
            return [first] + group.dropFirst().filter { added.insert(PathName(PathName.absolute($0.path))).inserted }
        }
    }

    /// Returns whether a file is a video that belongs to a photo in the same folder.
    func photo(ofVideo path: String) -> String? {
        let url = URL(exactPath: path)
        guard LivePhoto.videoExtensions.contains(url.pathExtension) else { return nil }
        let stem = String(path.dropLast(url.pathExtension.count))
        return LivePhoto.photoExtensions.map { stem + $0 }.first {
            access($0, F_OK) == 0 && LivePhoto.isPair(photo: $0, video: path)
        }
    }

    /// Returns a file that was queued before, with the sidecars that influence its upload.
    mutating func file(_ path: String, role: PhotoFile.Role) -> PhotoFile {
        var file = PhotoFile(path: path, role: role)
        let photo = group(of: PhotoFile(path: role.owner ?? path, isKnownPhotoOnly: false))[0]
        file.google = photo.google
        if role == .photo { file.sidecar = photo.sidecar }
        return file
    }

    private mutating func group(of file: PhotoFile) -> [PhotoFile] {
        let path = file.path
        guard case .photo = PhotoFormat.detect(at: URL(exactPath: path)) else { return [file] }
        var photo = file
        var companions: [PhotoFile] = []
        switch video(of: path) {
        case .none: break
        case .found(let video): companions.append(PhotoFile(path: video, role: .video(of: path)))
        case .unreadable(let refusal): photo.refusal = refusal
        }
        photo.google = sidecars(of: path, GoogleSidecar.names).first { GoogleSidecar(path: $0) != nil }
        for sidecar in sidecars(of: path, Self.xmpNames) + [photo.google].compactMap({ $0 }) {
            photo.sidecars.append(sidecar)
            if let obstacle = obstacle(to: sidecar, isXMP: sidecar != photo.google) {
                photo.notes.append("\(URL(exactPath: sidecar).lastPathComponent) is not uploaded, because \(obstacle)")
            } else if photo.sidecar != nil {
                let name = URL(exactPath: sidecar).lastPathComponent
                photo.notes.append("\(name) is not uploaded, because Immich accepts one XMP file for each photo")
            } else if destination.way.kind.isPhotoLibrary {
                photo.sidecar = sidecar
                if let note = Self.otherDate(in: sidecar, of: path) { photo.notes.append(note) }
            } else {
                companions.append(PhotoFile(path: sidecar, role: .sidecar(of: path)))
            }
        }
        for index in companions.indices { companions[index].google = photo.google }
        return [photo] + companions
    }

    // MARK: Videos

    private enum Video {
        case none
        case found(String)
        /// The photo is a Live Photo, and its video cannot be read.
        case unreadable(PhotoFile.Refusal)
    }

    private mutating func video(of photo: String) -> Video {
        let url = URL(exactPath: photo)
        guard LivePhoto.photoExtensions.contains(url.pathExtension) else { return .none }
        let stem = String(photo.dropLast(url.pathExtension.count))
        let sameName = LivePhoto.videoExtensions.map { stem + $0 }.first { access($0, F_OK) == 0 }
        if let sameName {
            switch LivePhoto.relation(photo: photo, video: sameName) {
            case .pair: return .found(sameName)
            case .unknown(let reason):
                let name = URL(exactPath: sameName).lastPathComponent
                let why = "\(name), the video of this Live Photo, cannot be read: \(reason)"
                return .unreadable(PhotoFile.Refusal(video: sameName, reason: why))
            case .unrelated: break
            }
        }
        let folder = Self.folder(of: photo)
        var known = videos[folder] ?? Videos(paths: Self.videos(in: folder))
        defer { videos[folder] = known }
        if known.paths.isEmpty { return .none }
        guard let identifier = LivePhoto.identifier(ofPhoto: photo) else { return .none }
        let found =
            known.byIdentifier
            ?? known.paths.reduce(into: [:]) { found, path in
                if let identifier = LivePhoto.identifier(ofVideo: path) { found[identifier] = path }
            }
        known.byIdentifier = found
        return found[identifier].map(Video.found) ?? .none
    }

    /// Returns the folder of a path as the user wrote it, with a slash at its end. The text is empty for the working folder.
    private static func folder(of path: String) -> String {
        path.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(path.utf8[...$0]) ?? "" } ?? ""
    }

    private static func videos(in folder: String) -> [String] {
        var videos: [String] = []
        _ = FolderEntries.read(folder.isEmpty ? "." : folder) { name in
            let path = folder + String(decoding: name, as: UTF8.self)
            guard LivePhoto.videoExtensions.contains(URL(exactPath: path).pathExtension), name.first != UInt8(ascii: ".") else {
                return
            }
            videos.append(path)
        }
        return videos
    }

    // MARK: Sidecars

    /// The names of XMP files: with the name of the photo (darktable), or without its extension (Adobe).
    private static func xmpNames(of photo: String) -> [String] {
        let stem = photo.utf8.lastIndex(of: UInt8(ascii: ".")).flatMap { String(photo.utf8[..<$0]) } ?? photo
        return ["\(photo).xmp", "\(photo).XMP", "\(stem).xmp", "\(stem).XMP"]
    }

    private func sidecars(of photo: String, _ names: (String) -> [String]) -> [String] {
        let folder = Self.folder(of: photo)
        var seen: Set<String> = []
        return names(String(photo.utf8.dropFirst(folder.utf8.count)) ?? "").map { folder + $0 }.filter { path in
            var information = stat()
            return seen.insert(path).inserted && stat(path, &information) == 0 && information.st_mode & S_IFMT == S_IFREG
        }
    }

    /// The maximum size in bytes of a sidecar that is sent in the form of its photo.
    private static let largestAttachment = 1 << 20

    /// Returns whether the beginning of a file is the beginning of an XMP file, or of a JSON file of Google Photos. Another file
    /// can have the name of a sidecar, for example a link to a file with a secret.
    static func isSidecar(_ content: Data, isXMP: Bool) -> Bool {
        // XMP files can be encoded in UTF-16, so NUL bytes are left out. The search for locations does not support UTF-32.
        let isUTF16 =
            content.starts(with: [0xFF, 0xFE]) && !content.starts(with: [0xFF, 0xFE, 0, 0]) || content.starts(with: [0xFE, 0xFF])
        guard isUTF16 || !content.contains(0) else { return false }
        let text = content.prefix(64 << 10).filter { $0 != 0 }
        let marks = isXMP ? ["<x:xmpmeta", "<rdf:RDF"] : ["\"photoTakenTime\"", "\"creationTime\""]
        return marks.contains {
            text.range(of: Data($0.utf8)) != nil
        }
    }

    /// Throws an error if the copy of a sidecar has another content.
    static func checkSidecar(_ copy: URL, of path: String) throws {
        let start = OriginalBytes.read(copy.path, limit: 64 << 10) ?? Data()
        guard !isSidecar(start, isXMP: path.lowercased().hasSuffix(".xmp")) else { return }
        throw PhotoUploadError.cannotRead(path: path, reason: "the file is not an XMP file or a file of Google Photos")
    }

    /// Reads a sidecar that is sent in the form of its photo.
    static func attachment(_ path: String) throws -> UploadCompany.Sidecar {
        guard let content = OriginalBytes.read(path, limit: largestAttachment + 1), content.count <= largestAttachment,
            isSidecar(content, isXMP: true)
        else {
            throw PhotoUploadError.cannotRead(path: path, reason: "the file changed while it was read")
        }
        return UploadCompany.Sidecar(fileName: URL(exactPath: path).lastPathComponent, content: content)
    }

    /// Returns a sentence if an XMP file contains another date than its photo. `nil` if the dates are equal or not known.
    private static func otherDate(in sidecar: String, of photo: String) -> String? {
        let dates = /(exif:DateTimeOriginal|photoshop:DateCreated|xmp:CreateDate)(="|>)(\d{4})-(\d\d)-(\d\d)/
        guard let content = OriginalBytes.read(sidecar, limit: largestAttachment),
            let match = String(decoding: content, as: UTF8.self).firstMatch(of: dates),
            let date = PhotoDate.of(URL(exactPath: photo)), date.source != .file
        else { return nil }
        let text = "\(match.3)-\(match.4)-\(match.5)"
        let name = URL(exactPath: sidecar).lastPathComponent
        return date.dayText == text
            ? nil
            : "the photo was taken on \(date.dayText), and \(name) contains the date \(text). Immich uses the date of \(name)"
    }

    /// Returns the reason why a sidecar is not uploaded, as a part of a sentence. `nil` if the sidecar can be uploaded.
    private func obstacle(to sidecar: String, isXMP: Bool) -> String? {
        let kind = destination.way.kind
        if kind.isPhotoLibrary, !isXMP { return "Immich accepts only XMP files" }
        if !kind.isPhotoLibrary, !kind.hasFolders { return "the destination does not keep the names of files" }
        guard let content = OriginalBytes.read(sidecar, limit: Self.largestAttachment + 1) else {
            return "the file cannot be read"
        }
        guard Self.isSidecar(content, isXMP: isXMP) else { return "the file is not an XMP file" }
        if kind.isPhotoLibrary, content.count > Self.largestAttachment { return "the file is larger than 1 MiB" }
        // The copy of a sidecar for a folder is also examined by the cleaner.
        let isExamined = isXMP && !kind.isPhotoLibrary && content.count <= Self.largestAttachment
        if !keepsLocation, !isExamined || PhotoLocation.isPresent(in: content) {
            return "the file may contain a location. --keep-location uploads the file"
        }
        return nil
    }
}
