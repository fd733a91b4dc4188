import Foundation
import ProcessSupport

/// Decides how much of a response may be written. The disk is not filled to its last byte, and a body without an announced length has a
/// limit.
struct DiskRoom {
    /// Known to fit up to here.
    private var fits: Int64 = 0
    /// Bytes of a body without an announced length, at most; `nil`: it has one.
    private var endless: Int64?

    /// Bytes written between two looks at the disk, at most. Near its floor fewer: many attempts write between their looks.
    private static let step: Int64 = 4 << 20
    private static let sharers: Int64 = 32
    /// Bytes of a body without an announced length, at most.
    private static let longestEndless: Int64 = 16 << 30

    init() {}

    /// - Parameters:
    ///   - offset: of the first byte that will be written.
    ///   - hasEnd: its length was announced.
    init(from offset: Int64, hasEnd: Bool) {
        fits = offset
        if !hasEnd { endless = Self.longestEndless }
    }

    /// Why these bytes must not be written; `nil`: they may.
    mutating func trouble(writing count: Int64, at offset: Int64, _ descriptor: Int32) -> FileTrouble? {
        let end = offset + count
        if let endless, end > endless {
            return FileTrouble(
                why: "The answer has no announced length, and did not end within \(endless) bytes.", isPassing: false,
                isOfNoUse: true)
        }
        guard end > fits else { return nil }
        guard let left = DiskSpace.left(on: descriptor) else {
            fits = end + Self.step
            return nil
        }
        guard left >= count else {
            // A body that may have no end does not keep the disk full until there is room.
            return FileTrouble(
                why: "\(FileFault.noRoomReason), except what is left to other programs", isPassing: true,
                isOfNoUse: endless != nil, mayBeEndless: endless != nil)
        }
        fits = end + min(Self.step, (left - count) / Self.sharers)
        return nil
    }
}
