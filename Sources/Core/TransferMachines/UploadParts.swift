/// The numbered parts of a file. All parts have the same size, but the last part may be smaller. The parts do not change after a
/// restart.
struct UploadParts: Equatable, Sendable {
    let byteCount: Int64
    let size: Int64

    /// - Parameters:
    ///   - smallest: The protocol's minimum size of a part.
    ///   - most: The protocol's maximum number of parts.
    init(byteCount: Int64, smallest: Int64, most: Int64 = 10_000) {
        self.byteCount = byteCount
        let mebibyte: Int64 = 1 << 20
        let needed = (byteCount + most - 1) / most
        size = max(smallest, (needed + mebibyte - 1) / mebibyte * mebibyte)
    }

    /// The number of parts, which is 1 for an empty file.
    var count: Int { max(1, Int((byteCount + size - 1) / size)) }

    /// Returns the range of a part. The first part is number 1.
    func range(of number: Int) -> (start: Int64, count: Int64) {
        let start = Int64(number - 1) * size
        return (start, min(size, byteCount - start))
    }

    func content(of number: Int) -> UploadContent {
        let (start, count) = range(of: number)
        return .snapshot(from: start, count: count)
    }

    /// Returns the numbers of the parts that a server has with their complete length.
    func whole(_ sizes: [Int: Int64]) -> Set<Int> {
        Set(sizes.filter { number, size in (1...count).contains(number) && range(of: number).count == size }.keys)
    }

    func bytes(of numbers: some Sequence<Int>) -> Int64 { numbers.reduce(0) { $0 + range(of: $1).count } }
}
