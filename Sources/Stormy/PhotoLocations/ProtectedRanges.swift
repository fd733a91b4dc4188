/// The ranges of a file that must not be overwritten.
struct ProtectedRanges {
    private var ranges: [Range<Int>] = []

    var isEmpty: Bool { ranges.isEmpty }

    mutating func add(_ range: Range<Int>) { if !range.isEmpty { ranges.append(range) } }

    /// Sorts and joins the ranges. Call this method before the methods that search the ranges.
    mutating func prepare() {
        var joined: [Range<Int>] = []
        for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            if let last = joined.last, last.upperBound >= range.lowerBound {
                joined[joined.count - 1] = last.lowerBound..<max(last.upperBound, range.upperBound)
            } else {
                joined.append(range)
            }
        }
        ranges = joined
    }

    private func first(endingBehind offset: Int) -> Int {
        var (low, high) = (0, ranges.count)
        while low < high {
            let middle = (low + high) / 2
            if ranges[middle].upperBound > offset { high = middle } else { low = middle + 1 }
        }
        return low
    }

    func overlaps(_ range: Range<Int>) -> Bool {
        let index = first(endingBehind: range.lowerBound)
        return index < ranges.count && ranges[index].lowerBound < range.upperBound
    }

    /// Returns the parts of a range that are not protected.
    func gaps(_ range: Range<Int>) -> [Range<Int>] {
        var (result, start, index) = ([Range<Int>](), range.lowerBound, first(endingBehind: range.lowerBound))
        while index < ranges.count, ranges[index].lowerBound < range.upperBound {
            if ranges[index].lowerBound > start { result.append(start..<ranges[index].lowerBound) }
            start = max(start, ranges[index].upperBound)
            index += 1
        }
        if start < range.upperBound { result.append(start..<range.upperBound) }
        return result
    }
}
