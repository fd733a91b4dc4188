import Foundation
import ProcessSupport

/// Decides how many bytes of a response can be written. Some disk space is always left free. The length of a body without an
/// announced length is limited.
struct DiskRoom {
    /// The offset up to which the bytes fit on the disk, according to the last check.
    private var fits: Int64 = 0
    /// The maximum number of bytes of a body without an announced length. `nil` if the length is announced.
    private var endless: Int64?

    /// The maximum number of bytes that are written between two checks of the disk. If little space is left, this number is
    /// smaller, because other attempts also write between two checks.
    private static let step: Int64 = 4 << 20
    private static let sharers: Int64 = 32
    /// The maximum number of bytes of a body without an announced length.
    private static let longestEndless: Int64 = 16 << 30

    init() {}

    /// - Parameters:
    ///   - offset: the offset of the first byte that will be written.
    ///   - hasEnd: `true` if the length was announced.
    init(from offset: Int64, hasEnd: Bool) {
        fits = offset
        if !hasEnd { endless = Self.longestEndless }
    }

    /// Returns the reason why these bytes must not be written. Returns `nil` if the bytes can be written.
    mutating func trouble(writing count: Int64, at offset: Int64, _ descriptor: Int32) -> FileTrouble? {
        let end = offset + count
        if let endless, end > endless {
            return FileTrouble(
                why: "The response has no Content-Length and is longer than \(endless) bytes.", isPassing: false,
                isOfNoUse: true)
        }
        guard end > fits else { return nil }
        guard let left = DiskSpace.left(on: descriptor) else {
            fits = end + Self.step
            return nil
        }
        guard left >= count else {
            // A body without an announced length may be endless. The partial file of such a body must not stay on a full disk.
            // Otherwise the partial file would occupy the space until other files are deleted.
            return FileTrouble(
                why: "\(FileFault.noRoomReason), and the remaining space is left for other programs", isPassing: true,
                isOfNoUse: endless != nil, mayBeEndless: endless != nil)
        }
        fits = end + min(Self.step, (left - count) / Self.sharers)
        return nil
    }
}
