import Foundation
import ProcessSupport

/// How much of an answer may be written: the disk is not filled to its last byte, and a body of which nobody said where it ends has an
/// end.
struct DiskRoom {
    /// Known to fit up to here.
    private var fits: Int64 = 0
    /// Bytes of a body without an announced length, at most; `nil`: it has one.
    private var endless: Int64?

    /// Bytes written between two looks at the disk, at most. Near its floor fewer: many attempts write between their looks.
    private static let step: Int64 = 4 << 20
    private static let sharers: Int64 = 32
    /// Bytes of a body without an announced length on any disk.
    private static let longestEndless: Int64 = 16 << 30

    init() {}

    /// - Parameters:
    ///   - offset: of the first byte that will be written.
    ///   - hasEnd: its length was announced.
    init(from offset: Int64, hasEnd: Bool, on descriptor: Int32) {
        fits = offset
        // Half of what is free now: whoever sends without end does not get all of it.
        if !hasEnd { endless = min(Self.longestEndless, (DiskSpace.left(on: descriptor) ?? .max) / 2 + offset) }
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
            return FileTrouble(why: "\(FileFault.noRoomReason), except what is left to other programs", isPassing: true)
        }
        fits = end + min(Self.step, (left - count) / Self.sharers)
        return nil
    }
}
