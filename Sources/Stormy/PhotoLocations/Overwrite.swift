/// Bytes of a photo that are replaced with the same number of other bytes.
package struct Overwrite: Sendable, Equatable {
    package enum Content: Sendable, Equatable {
        case bytes([UInt8])
        /// Every byte is replaced by this byte.
        case fill(UInt8)
    }

    /// The range in the file.
    package var range: Range<Int>
    package var content: Content
    /// The name of the block in messages, for example "GPS directory of Exif".
    package let block: String

    /// Returns a part of the overwrite.
    ///
    /// - Parameter part: A range of the file inside `range`.
    func cut(to part: Range<Int>) -> Overwrite {
        var result = self
        result.range = part
        if case .bytes(let bytes) = content {
            result.content = .bytes(Array(bytes[part.lowerBound - range.lowerBound..<part.upperBound - range.lowerBound]))
        }
        return result
    }
}

/// A list of overwrites in the order of the file, without overlaps. If a new overwrite overlaps an earlier overwrite, the new
/// overwrite replaces the earlier overwrite.
struct OverwriteList {
    private(set) var all: [Overwrite] = []

    /// Returns the index of the first overwrite that ends after `offset`.
    private func index(endingBehind offset: Int) -> Int {
        var (low, high) = (0, all.count)
        while low < high {
            let middle = (low + high) / 2
            if all[middle].range.upperBound > offset { high = middle } else { low = middle + 1 }
        }
        return low
    }

    mutating func add(_ new: Overwrite) {
        guard !new.range.isEmpty else { return }
        let first = index(endingBehind: new.range.lowerBound)
        var last = first
        var replaced = [new]
        while last < all.count, all[last].range.lowerBound < new.range.upperBound {
            let old = all[last]
            if old.range.lowerBound < new.range.lowerBound {
                replaced.insert(old.cut(to: old.range.lowerBound..<new.range.lowerBound), at: 0)
            }
            if old.range.upperBound > new.range.upperBound {
                replaced.append(old.cut(to: new.range.upperBound..<old.range.upperBound))
            }
            last += 1
        }
        all.replaceSubrange(first..<last, with: replaced)
    }

    /// Returns the first overwrite that contains bytes of a range.
    func first(in range: Range<Int>) -> Overwrite? {
        let first = index(endingBehind: range.lowerBound)
        return first < all.count && all[first].range.lowerBound < range.upperBound ? all[first] : nil
    }

    func touches(_ range: Range<Int>) -> Bool { first(in: range) != nil }

    /// Applies the overwrites to the original bytes in a buffer. The first byte of the buffer is the byte at `offset`.
    func apply(to buffer: UnsafeMutableRawBufferPointer, at offset: Int) {
        var next = index(endingBehind: offset)
        while next < all.count, all[next].range.lowerBound < offset + buffer.count {
            let common = all[next].range.clamped(to: offset..<offset + buffer.count)
            let target = UnsafeMutableRawBufferPointer(rebasing: buffer[common.lowerBound - offset..<common.upperBound - offset])
            switch all[next].content {
            case .fill(let byte): target.initializeMemory(as: UInt8.self, repeating: byte)
            case .bytes(let bytes):
                let skipped = common.lowerBound - all[next].range.lowerBound
                target.copyBytes(from: bytes[skipped..<skipped + common.count])
            }
            next += 1
        }
    }
}
