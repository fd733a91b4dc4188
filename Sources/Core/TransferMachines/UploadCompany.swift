import Foundation

/// The relations of an uploaded file to other files: the photo of a sidecar, or the video of a Live Photo.
package struct UploadCompany: Codable, Equatable, Sendable {
    /// A small file that is sent in the same form as the photo (``UploadKind/isPhotoLibrary``).
    package struct Sidecar: Codable, Equatable, Sendable {
        package let fileName: String
        package let content: Data

        package init(fileName: String, content: Data) { (self.fileName, self.content) = (fileName, content) }
    }

    /// The submission key of the upload that must be complete before this upload begins. `nil` if this upload can begin.
    package var leader: String?
    /// The submission keys of the uploads that begin after this upload is complete.
    package var followers: [String] = []
    /// `true` if the file is the video of a photo that was queued earlier.
    package var isVideo = false
    /// The server's identifier of the video that belongs to this photo (``UploadKind/isPhotoLibrary``).
    package var video: String?
    /// The server's identifier of the photo that this video belongs to. The server links the two files after the upload.
    package var photo: String?
    package var sidecar: Sidecar?
    /// The name with which the names of the group stay equal. `nil` if this upload has no leader.
    package var expectedName: String?

    package init(leader: String? = nil, followers: [String] = [], sidecar: Sidecar? = nil) {
        (self.leader, self.followers, self.sidecar) = (leader, followers, sidecar)
    }
}

/// The time at which a photo was taken, and the source of this time.
package struct PhotoTime: Codable, Equatable, Sendable {
    /// The sources of the time of a photo, best source first.
    package enum Source: String, Codable, Sendable {
        /// The Exif data of the photo, with an offset from UTC.
        case exif
        /// The Exif data of the photo, which have no offset from UTC. The time zone of this computer is assumed.
        case exifWithoutOffset
        /// The JSON file of Google Photos that belongs to the photo.
        case google
        /// The modification time of the file.
        case file
    }

    package let date: Date
    package let source: Source

    package init(date: Date, source: Source) { (self.date, self.source) = (date, source) }
}

extension UploadOrder {
    /// Changes the order because the upload's leader is complete.
    ///
    /// A file in a folder gets the stored name of the leader, so that the names of files that belong together stay equal. In a
    /// library of photos, the leader is the video of a Live Photo, and the form of the photo then contains its identifier. If the
    /// photo was queued earlier, the leader is the photo, and the video is linked to it.
    ///
    /// - Parameter url: The address of the leader's file on the server. `nil` if the address is unknown.
    package mutating func join(_ leaderName: String?, storedAt url: String?) {
        company?.leader = nil
        guard let last = url.flatMap({ URL(string: $0) })?.pathComponents.last else { return }
        if method.isPhotoLibrary {
            guard last != "photos" else { return }
            if company?.isVideo == true { company?.photo = last } else { company?.video = last }
        } else if let leaderName, method.hasFolders {
            fileName = Self.name(fileName, of: leaderName, storedAs: last)
            company?.expectedName = fileName
        }
    }

    /// Returns the name of a file that belongs to another file, after the other file was stored with another name.
    ///
    /// For example, if `a.jpg` is stored as `a-1.jpg`, the sidecar `a.jpg.xmp` becomes `a-1.jpg.xmp`, and `a.mov` becomes
    /// `a-1.mov`.
    package static func name(_ name: String, of leader: String, storedAs stored: String) -> String {
        if name.hasPrefix(leader) { return stored + name.dropFirst(leader.count) }
        func stem(_ name: String) -> Substring { name.lastIndex(of: ".").map { name[..<$0] } ?? name[...] }
        guard name.hasPrefix("\(stem(leader)).") else { return name }
        return String(stem(stored)) + name.dropFirst(stem(leader).count)
    }
}
