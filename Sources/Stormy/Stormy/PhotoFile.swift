import Foundation

/// The reason why a photo was not queued.
package enum PhotoUploadError: Error, CustomStringConvertible {
    case cannotRead(path: String, reason: String)
    case addressIsTaken(path: String)
    case isOwnFile(path: String)
    /// The file is not sent without the file that it belongs to.
    case belongsToUnsent(path: String, other: String)
    case isNoPhoto(path: String)

    package var description: String {
        switch self {
        case .cannotRead(let path, let reason): "\(path): \(reason)"
        case .addressIsTaken(let path): "\(path): this presigned address was already used for another photo"
        case .isOwnFile(let path): "\(path): the file belongs to Stormy. Stormy does not upload its own files"
        case .belongsToUnsent(let path, let other):
            "\(path): the file is only uploaded together with \(URL(exactPath: other).lastPathComponent), which is not uploaded"
        case .isNoPhoto(let path): "\(path): the file is not a known kind of photo"
        }
    }
}

/// A file that the user wants to send.
package struct PhotoFile: Sendable, Equatable {
    package let path: String
    /// `true` if the file was found in a folder or a list. A file from a folder or a list is sent only if it is a photo of a
    /// known format.
    package let isKnownPhotoOnly: Bool
    /// The relation of the file to another file of the same call.
    package let role: Role
    /// The XMP file that is sent in the same form as the photo. `nil` if the photo has no such file.
    var sidecar: String?
    /// The JSON file of Google Photos that belongs to the photo. `nil` if the photo has no such file.
    var google: String?
    /// Sentences for the user about the photo.
    var notes: [String] = []
    /// All sidecars of the photo. If a sidecar is not sent, ``notes`` contains the reason.
    package var sidecars: [String] = []
    /// The video of the photo, if the photo is not sent because its video cannot be read. `nil` if the photo can be sent.
    var refusal: Refusal?

    struct Refusal: Sendable, Equatable {
        /// The path of the video.
        let video: String
        let reason: String
    }

    package enum Role: Sendable, Equatable {
        case photo
        /// The video of a Live Photo.
        case video(of: String)
        case sidecar(of: String)

        /// The path of the photo that the file belongs to. `nil` for a photo.
        package var owner: String? {
            switch self {
            case .photo: nil
            case .video(let photo), .sidecar(let photo): photo
            }
        }
    }

    package init(path: String, isKnownPhotoOnly: Bool) {
        (self.path, self.isKnownPhotoOnly, role) = (path, isKnownPhotoOnly, .photo)
    }

    /// Creates a file that belongs to a photo.
    init(path: String, role: Role) { (self.path, isKnownPhotoOnly, self.role) = (path, false, role) }
}
