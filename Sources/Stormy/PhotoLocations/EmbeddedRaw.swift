/// A camera's raw file that is embedded in a DNG file (DNG 1.7, OriginalRawFileData). The raw file has up to eight parts. A part
/// is a code of four letters, or a fork of the original file. A fork is compressed in blocks of 65,536 bytes.
///
/// A block with a location is compressed again and written over its old bytes. If the DNG file has an MD5 of the data, the MD5 is
/// updated.
struct EmbeddedRaw {
    private let view: ByteView
    private let digest: ByteView?
    private let block: String

    /// - Parameters:
    ///   - view: The value of OriginalRawFileData.
    ///   - digest: The value of OriginalRawFileDigest.
    init(_ view: ByteView, digest: ByteView?, _ block: String) { (self.view, self.digest, self.block) = (view, digest, block) }

    func clean() {
        view.recordBlock(block)
        var position = 0
        // Parts 2, 3, 6 and 7 are the types and creators of files of the classic Mac OS.
        for part in 0..<8 where position + 4 <= view.count {
            guard let size = view.number(position, 4) else { return }
            if size == 0 || part & 2 != 0 {
                position += 4
                continue
            }
            guard let fork = Fork(view.from(position), size: size) else { return fail() }
            clean(fork)
            position += fork.end
        }
        OpaqueBytes(view.from(position), block).clean()
        guard view.isTouched, let digest, let old = MD5.digest(of: view, current: false), digest.has(old, at: 0),
            let new = MD5.digest(of: view)
        else { return }
        digest.overwrite(0, with: new, block)
    }

    private func fail() { view.search.fail(.unproven(block: block)) }

    private func clean(_ fork: Fork) {
        // Deflated bytes are recorded like pixels, because they may contain the signatures of other blocks by chance.
        for deflated in fork.blocks { deflated.recordPixels(0, deflated.count) }
        guard let inner = view.search.search(nested: fork, as: block) else { return }
        for (index, deflated) in fork.blocks.enumerated() where inner.overwrites.touches(fork.range(index)) {
            guard let bytes = inner.bytes(fork.range(index)), let packed = Deflate.deflate(bytes, into: deflated.count) else {
                return fail()
            }
            deflated.overwrite(0, with: packed, block)
        }
    }

    /// The bytes of a fork. The fork is inflated one block after the other.
    private final class Fork: PhotoBytes {
        private static let blockSize = 1 << 16

        let count: Int
        /// The deflated blocks.
        let blocks: [ByteView]
        /// The offset of the next part.
        let end: Int
        private var inflated: (index: Int, bytes: [UInt8])?

        /// - Parameter size: The number of inflated bytes.
        init?(_ view: ByteView, size: Int) {
            let count = (size + Self.blockSize - 1) / Self.blockSize
            // The size is followed by the offset of each block and the offset of the end.
            guard 4 * (count + 2) <= view.count else { return nil }
            var (blocks, start) = ([ByteView](), view.number(4, 4) ?? 0)
            for index in 0..<count {
                guard let end = view.number(8 + 4 * index, 4), start >= 4 * (count + 2), start < end, end <= view.count else {
                    return nil
                }
                blocks.append(view.part(start, end - start))
                start = end
            }
            (self.count, self.blocks, end) = (size, blocks, start)
        }

        func range(_ index: Int) -> Range<Int> { index * Self.blockSize..<min(count, (index + 1) * Self.blockSize) }

        func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) -> Bool {
            var filled = 0
            while filled < buffer.count {
                let index = (offset + filled) / Self.blockSize
                guard let bytes = inflate(index) else { return false }
                let part = bytes.dropFirst((offset + filled) % Self.blockSize).prefix(buffer.count - filled)
                UnsafeMutableRawBufferPointer(rebasing: buffer[filled...]).copyBytes(from: part)
                filled += part.count
            }
            return true
        }

        private func inflate(_ index: Int) -> [UInt8]? {
            if let inflated, inflated.index == index { return inflated.bytes }
            guard index < blocks.count,
                let bytes = Deflate.inflate(blocks[index].allBytes(current: false), limit: Self.blockSize),
                bytes.count == range(index).count
            else { return nil }
            inflated = (index, bytes)
            return bytes
        }
    }
}
