/// A file cut into numbered parts of one size, the last of which may be smaller. The same cut after every restart.
struct UploadParts: Equatable, Sendable {
    let byteCount: Int64
    let size: Int64

    /// - Parameters:
    ///   - smallest: what the protocol allows at least.
    ///   - most: how many it allows.
    init(byteCount: Int64, smallest: Int64, most: Int64 = 10_000) {
        self.byteCount = byteCount
        let mebibyte: Int64 = 1 << 20
        let needed = (byteCount + most - 1) / most
        size = max(smallest, (needed + mebibyte - 1) / mebibyte * mebibyte)
    }

    /// At least one, also of nothing.
    var count: Int { max(1, Int((byteCount + size - 1) / size)) }

    /// From 1 on.
    func range(of number: Int) -> (start: Int64, count: Int64) {
        let start = Int64(number - 1) * size
        return (start, min(size, byteCount - start))
    }

    func content(of number: Int) -> UploadContent {
        let (start, count) = range(of: number)
        return .snapshot(from: start, count: count)
    }

    /// Those that are there in full length, of what a server says it has.
    func whole(_ sizes: [Int: Int64]) -> Set<Int> {
        Set(sizes.filter { number, size in (1...count).contains(number) && range(of: number).count == size }.keys)
    }

    func bytes(of numbers: some Sequence<Int>) -> Int64 { numbers.reduce(0) { $0 + range(of: $1).count } }
}
