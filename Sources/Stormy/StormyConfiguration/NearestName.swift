/// Finds the known name that is most similar to a mistyped name.
package enum NearestName {
    /// Returns the known name that is most similar to `name` (the smallest distance). If several names are equally similar,
    /// returns the first name. `nil` if `known` is empty.
    package static func find(_ name: String, among known: [String]) -> (name: String, isLikely: Bool)? {
        var best: (name: String, distance: Int)?
        for candidate in known {
            let distance = distance(name.lowercased(), candidate)
            if distance < best?.distance ?? .max { best = (candidate, distance) }
        }
        return best.map { ($0.name, $0.distance <= max(2, $0.name.count / 3)) }
    }

    /// Returns the number of insertions, deletions, replacements and exchanges of adjacent characters (optimal string alignment).
    static func distance(_ left: String, _ right: String) -> Int {
        let left = Array(left.prefix(100)), right = Array(right.prefix(100))
        var beforeLast: [Int] = []
        var last = Array(0...right.count)
        for (row, character) in left.enumerated() {
            var current = [row + 1]
            for (column, other) in right.enumerated() {
                var cost = min(last[column + 1] + 1, current[column] + 1, last[column] + (character == other ? 0 : 1))
                if row > 0, column > 0, character == right[column - 1], left[row - 1] == other {
                    cost = min(cost, beforeLast[column - 1] + 1)
                }
                current.append(cost)
            }
            beforeLast = last
            last = current
        }
        return last[right.count]
    }
}
