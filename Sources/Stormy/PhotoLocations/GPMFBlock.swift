/// Telemetry of GoPro cameras (GPMF). A block consists of a name, a type, the size of a value, the number of values, and the
/// values. The name of a block with positions is replaced by FREE, because readers ignore blocks with this name.
struct GPMFBlock {
    private let view: ByteView
    private let block: String

    init(_ view: ByteView, _ block: String) { (self.view, self.block) = (view, block) }

    func clean() {
        clean(view, depth: 0)
        // The search by name also finds values after a damaged part of the list.
        for name in ["GPS", "GLPI", "GPRI"] {
            var from = 0
            while let place = view.find(Array(name.utf8), from: from) {
                from = place + 4
                if Self.isValue(at: place, in: view), let size = view.number(place + 5, 1), let count = view.number(place + 6, 2)
                {
                    cleanValue(view, place, size, count)
                }
            }
        }
    }

    /// The types of position values, and the possible sizes of one value.
    private static let values: [String: (type: Character, sizes: ClosedRange<Int>)] = [
        "GPS5": ("l", 20...20), "GPS9": ("?", 28...36), "GPSU": ("U", 16...16), "GPSF": ("L", 4...4), "GPSP": ("S", 2...2),
        "GPSA": ("F", 4...4), "GLPI": ("?", 8...48), "GPRI": ("?", 8...64),
    ]

    /// Returns whether a position value begins at an offset. The name, the type and the size are compared, because other data may
    /// contain the name by chance.
    static func isValue(at position: Int, in view: ByteView) -> Bool {
        guard let value = values[view.name(position)], let size = view.number(position + 5, 1) else { return false }
        return view.number(position + 4, 1) == Int(value.type.asciiValue!) && value.sizes.contains(size)
    }

    private func cleanValue(_ list: ByteView, _ position: Int, _ size: Int, _ count: Int) {
        let content = list.part(position + 8, size * count)
        recordPlace(content, size)
        list.overwrite(position, with: Array("FREE".utf8), block)
        content.fill(0, content.count, block)
    }

    private static func isLocation(_ name: String) -> Bool { name.hasPrefix("GPS") || ["GLPI", "GPRI"].contains(name) }

    private func clean(_ list: ByteView, depth: Int) {
        var position = 0
        while position + 8 <= list.count, depth < 8, !view.search.isFinished {
            guard let type = list.number(position + 4, 1), let size = list.number(position + 5, 1),
                let count = list.number(position + 6, 2)
            else { return }
            let name = list.name(position)
            if name == "\0\0\0\0" { return }
            let content = list.part(position + 8, size * count)
            if type == 0 {
                clean(content, depth: depth + 1)
            } else if Self.isLocation(name) {
                cleanValue(list, position, size, count)
            }
            position += 8 + (size * count + 3) / 4 * 4
        }
    }

    /// Records the location in a GPS5 or GPS9 block. The first two numbers are the latitude and the longitude, in units of 1e-7
    /// degrees.
    private func recordPlace(_ content: ByteView, _ size: Int) {
        guard size >= 20, let first = content.number(0, 4), let second = content.number(4, 4) else { return }
        let (latitude, longitude) = (Int32(truncatingIfNeeded: first), Int32(truncatingIfNeeded: second))
        guard latitude != 0 || longitude != 0 else { return }
        view.search.add(FoundPlace(latitude: Double(latitude) / 1e7, longitude: Double(longitude) / 1e7))
    }
}
