import Foundation

/// The format of a picture. The format is detected by the first bytes of the file, and never by the file's name.
package enum PhotoFormat: String, Sendable, CaseIterable {
    case jpeg, png, webp, heic, avif, jxl, tiff, raw

    /// The number of bytes that are enough to detect the format.
    static let signatureLength = 64

    /// Detects the format from the first bytes of a file. Returns `nil` if the bytes are not a picture of a known format.
    package init?(firstBytes bytes: Data) {
        let bytes = [UInt8](bytes.prefix(Self.signatureLength))
        func has(_ text: String, at offset: Int) -> Bool { bytes.dropFirst(offset).starts(with: text.utf8) }
        if bytes.starts(with: [0xFF, 0xD8, 0xFF]) {
            self = .jpeg
        } else if bytes.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) {
            self = .png
        } else if has("RIFF", at: 0), has("WEBP", at: 8) {
            self = .webp
        } else if has("ftyp", at: 4) {
            // Reads the brands of ISO base media files: the major brand, and the compatible brands.
            let brands = stride(from: 8, to: min(bytes.count, 56), by: 4).filter { $0 != 12 }.map {
                String(decoding: bytes.dropFirst($0).prefix(4), as: UTF8.self)
            }
            if brands.contains(where: { ["avif", "avis"].contains($0) }) {
                self = .avif
            } else if brands.contains(where: { ["heic", "heix", "hevc", "heim", "heis", "mif1", "msf1"].contains($0) }) {
                self = .heic
            } else if brands.contains("crx ") {
                self = .raw
            } else {
                return nil
            }
        } else if bytes.starts(with: [0xFF, 0x0A]) || bytes.starts(with: [0, 0, 0, 0x0C]) && has("JXL \r\n", at: 4) {
            // A JPEG XL file is a codestream without boxes, or a list of boxes (ISO 18181-2).
            self = .jxl
        } else if bytes.starts(with: [0x49, 0x49, 0x2A, 0x00]) || bytes.starts(with: [0x4D, 0x4D, 0x00, 0x2A]) {
            // Raw files of most cameras are TIFF files. Canon's raw files have the letters CR after the header.
            self = has("CR", at: 8) ? .raw : .tiff
        } else if has("FUJIFILMCCD-RAW", at: 0) || has("IIRO", at: 0) || has("IIRS", at: 0) || has("MMOR", at: 0)
            || bytes.starts(with: [0x49, 0x49, 0x55, 0x00]) || has("FOVb", at: 0)
            // BigTIFF is treated as a raw format, because Stormy has no decoder for BigTIFF.
            || bytes.starts(with: [0x49, 0x49, 0x2B, 0x00]) || bytes.starts(with: [0x4D, 0x4D, 0x00, 0x2B])
        {
            self = .raw
        } else {
            return nil
        }
    }

    /// The kind of a file, detected by its first bytes.
    package enum DetectedKind: Sendable, Equatable {
        case photo(PhotoFormat)
        /// A file of another kind, or not a regular file.
        case other
        /// The file cannot be read. The value is `errno`.
        case unreadable(Int32)
    }

    /// Reads the first bytes of a file.
    package static func detect(at file: URL) -> DetectedKind {
        // Without O_NONBLOCK, opening a named pipe waits for a writer.
        let descriptor = open(file.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return .unreadable(errno) }
        defer { close(descriptor) }
        var information = stat()
        guard fstat(descriptor, &information) == 0 else { return .unreadable(errno) }
        guard information.st_mode & S_IFMT == S_IFREG else { return .other }
        var bytes = [UInt8](repeating: 0, count: signatureLength)
        var filled = 0
        while filled < bytes.count {
            let count = bytes.withUnsafeMutableBytes { read(descriptor, $0.baseAddress! + filled, $0.count - filled) }
            if count < 0, errno == EINTR { continue }
            if count < 0 { return .unreadable(errno) }
            if count == 0 { break }
            filled += count
        }
        return PhotoFormat(firstBytes: Data(bytes.prefix(filled))).map(DetectedKind.photo) ?? .other
    }

    /// Detects the format of a file. The result is `nil` if the file is not a picture, or cannot be read.
    package init?(of file: URL) {
        guard case .photo(let format) = Self.detect(at: file) else { return nil }
        self = format
    }

    /// The media type that is sent to servers.
    package var contentType: String {
        switch self {
        case .jpeg: "image/jpeg"
        case .png: "image/png"
        case .webp: "image/webp"
        case .heic: "image/heic"
        case .avif: "image/avif"
        case .jxl: "image/jxl"
        case .tiff: "image/tiff"
        case .raw: "application/octet-stream"
        }
    }

    static func contentType(of file: URL) -> String { PhotoFormat(of: file).contentType }
}

extension PhotoFormat? {
    /// The media type. If the file is not a photo of a known format, the media type is `application/octet-stream`.
    var contentType: String { self?.contentType ?? "application/octet-stream" }
}
