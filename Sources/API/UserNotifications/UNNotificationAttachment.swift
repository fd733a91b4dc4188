import BackgroundLedger
import BackgroundRuntime
import Foundation
import ProcessSupport
import Spool

/// The option key for the expected type of a file, a `String` such as "public.png". If the content of the file matches no known
/// type, the attachment is refused. The error is `attachmentCorrupt` if the expected type is a known type. Otherwise the error is
/// `attachmentUnrecognizedType`.
public let UNNotificationAttachmentOptionsTypeHintKey = "UNNotificationAttachmentOptionsTypeHintKey"
/// The option key for a value that hides the picture. Differs from Apple: the value is stored and has no effect.
public let UNNotificationAttachmentOptionsThumbnailHiddenKey = "UNNotificationAttachmentOptionsThumbnailHiddenKey"
/// The option key for the part of the picture that is shown as the thumbnail. Differs from Apple: the value is stored and has no
/// effect.
public let UNNotificationAttachmentOptionsThumbnailClippingRectKey = "UNNotificationAttachmentOptionsThumbnailClippingRectKey"
/// The option key for the frame of a film that is shown as the thumbnail. Differs from Apple: the value is stored and has no
/// effect.
public let UNNotificationAttachmentOptionsThumbnailTimeKey = "UNNotificationAttachmentOptionsThumbnailTimeKey"

/// A file that belongs to a notification: a picture, a sound or a film.
///
/// Differs from Apple: the file is copied and not moved when its notification is added, because it may be a file of the user. A
/// desktop shows only the first picture, as a thumbnail. The other files are stored, and the app receives these files with the
/// user's response.
public final class UNNotificationAttachment: NSObject, @unchecked Sendable {  // Unchecked, because the object is immutable
    /// The identifier of the attachment, which the app chooses.
    public let identifier: String
    /// The location of the file. Before the app adds the notification, the URL is the location of the app's file. In a delivered
    /// notification, the URL is the location of the copy.
    public let url: URL
    /// The type of the file, for example "public.png".
    public let type: String

    /// Creates an attachment. The initializer checks only the beginning of the file. If another part of the file is damaged, the
    /// desktop does not show the file.
    ///
    /// - Parameters:
    ///   - identifier: the identifier of the attachment. If the text is empty, the initializer creates an identifier.
    ///   - url: the location of a file. The maximum size is 10 MB for a picture (PNG, JPEG, GIF, WebP), 5 MB for a sound (AIFF,
    ///     WAV, MP3, M4A, Ogg), and 50 MB for a film (MPEG, MP4, AVI).
    ///   - options: the values for the option keys that this module defines.
    /// - Throws: ``UNError``: `attachmentInvalidURL`, `attachmentUnrecognizedType`, `attachmentInvalidFileSize`,
    ///   `attachmentCorrupt`.
    public init(identifier: String, url: URL, options: [AnyHashable: Any]? = nil) throws {
        let (head, size) = try AttachmentFile.readHead(at: url)
        let hint = options?[UNNotificationAttachmentOptionsTypeHintKey] as? String
        let promised = AttachmentFile.Kind.all.first { $0.type == hint || $0.endings.contains(url.pathExtension.lowercased()) }
        guard let kind = AttachmentFile.Kind.all.first(where: { $0.begins(head) }) else {
            throw promised.map {
                UNError(.attachmentCorrupt, "\(url.path): the content is not of type \($0.type)")
            } ?? UNError(.attachmentUnrecognizedType, "\(url.path): the file is not a picture, sound or film of a supported type")
        }
        guard size <= kind.maximumBytes else {
            throw UNError(
                .attachmentInvalidFileSize,
                "\(url.path): the file has \(size) bytes; the limit for type \(kind.type) is \(kind.maximumBytes)")
        }
        self.identifier = identifier.isEmpty ? UUID.random().uuidString : identifier
        (self.url, type) = (url, kind.type)
        super.init()
    }

    init(stored: NoticeAttachment) {
        (identifier, type) = (stored.identifier, stored.type)
        url = AppRuntime.shared.directories.spooled(stored.file)
        super.init()
    }

    /// Copies the file into the spool and returns the copy. If the caller does not call `keep()`, the copy is deleted when no
    /// reference to it exists any more.
    func taken() throws(UNError) -> (attachment: NoticeAttachment, copy: Snapshot) {
        do throws(Snapshot.Failure) {
            let copy = try Snapshot.make(of: url, in: AppRuntime.shared.directories, prefix: AppDirectories.attachmentPrefix)
            return (NoticeAttachment(identifier: identifier, type: type, file: copy.name, sha256: copy.sha256), copy)
        } catch {
            switch error {
            case .missing, .unreadable, .notAFile: throw UNError(.attachmentInvalidURL, "\(error)")
            case .empty, .changedWhileRead: throw UNError(.attachmentCorrupt, "\(error)")
            case .noSpace, .cannotWrite: throw UNError(.attachmentMoveIntoDataStoreFailed, "\(error)")
            }
        }
    }
}

/// Checks a file before it is copied.
private enum AttachmentFile {
    struct Kind {
        let type: String
        let endings: Set<String>
        let maximumBytes: Int64
        /// A closure that returns whether the first bytes of a file show that the file is of this kind.
        let begins: ([UInt8]) -> Bool

        // Apple's documentation of UNNotificationAttachment contains these maximum sizes.
        private static func picture(_ type: String, _ endings: Set<String>, _ begins: @escaping ([UInt8]) -> Bool) -> Kind {
            Kind(type: type, endings: endings, maximumBytes: 10_485_760, begins: begins)
        }

        private static func sound(_ type: String, _ endings: Set<String>, _ begins: @escaping ([UInt8]) -> Bool) -> Kind {
            Kind(type: type, endings: endings, maximumBytes: 5_242_880, begins: begins)
        }

        private static func film(_ type: String, _ endings: Set<String>, _ begins: @escaping ([UInt8]) -> Bool) -> Kind {
            Kind(type: type, endings: endings, maximumBytes: 52_428_800, begins: begins)
        }

        /// All supported kinds of files, in the order in which the first bytes of a file are compared with them.
        nonisolated(unsafe) static let all: [Kind] = [  // because it is never changed
            picture("public.png", ["png"]) { $0.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) },
            picture("public.jpeg", ["jpg", "jpeg"]) { $0.starts(with: [0xFF, 0xD8, 0xFF]) },
            picture("com.compuserve.gif", ["gif"]) { has("GIF87a", $0) || has("GIF89a", $0) },
            picture("org.webmproject.webp", ["webp"]) { has("RIFF", $0) && has("WEBP", $0, at: 8) },
            sound("com.microsoft.waveform-audio", ["wav"]) { has("RIFF", $0) && has("WAVE", $0, at: 8) },
            sound("public.aiff-audio", ["aif", "aiff", "aifc"]) { has("FORM", $0) && has("AIF", $0, at: 8) },
            sound("public.mpeg-4-audio", ["m4a"]) { has("ftypM4A", $0, at: 4) },
            sound("org.xiph.ogg-audio", ["ogg", "oga", "opus"]) { has("OggS", $0) },
            sound("public.mp3", ["mp3"]) { has("ID3", $0) || $0.count > 1 && $0[0] == 0xFF && $0[1] & 0xE6 == 0xE2 },
            film("public.mpeg-4", ["mp4", "m4v"]) { has("ftyp", $0, at: 4) },
            film("public.avi", ["avi"]) { has("RIFF", $0) && has("AVI ", $0, at: 8) },
            film("public.mpeg", ["mpg", "mpeg"]) { $0.starts(with: [0, 0, 1, 0xBA]) || $0.starts(with: [0, 0, 1, 0xB3]) },
        ]

        private static func has(_ word: String, _ head: [UInt8], at offset: Int = 0) -> Bool {
            head.dropFirst(offset).starts(with: Array(word.utf8))
        }
    }

    /// Returns the first bytes and the size of the file. The method does not open a pipe or a device.
    static func readHead(at url: URL) throws -> (head: [UInt8], size: Int64) {
        guard url.isFileURL else { throw UNError(.attachmentInvalidURL, "\(url) is not the URL of a file") }
        guard let attributes = try? FileManager.default.attributesOfItem(atPath: url.resolvingSymlinksInPath().path) else {
            throw UNError(.attachmentInvalidURL, "\(url.path): no such file")
        }
        guard attributes[.type] as? FileAttributeType == .typeRegular,
            let file = try? FileHandle(forReadingFrom: url), let head = try? file.read(upToCount: 16) ?? Data()
        else { throw UNError(.attachmentInvalidURL, "\(url.path) cannot be read") }
        return (Array(head), (attributes[.size] as? NSNumber)?.int64Value ?? 0)
    }
}
