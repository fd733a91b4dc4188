/// The metadata about a complete film. The metadata consists of boxes with locations, keys with values, and a list of the
/// camera's maker.
struct MovieMetadata {
    private let box: Box
    private let name: String

    init(_ box: Box, _ name: String) { (self.box, self.name) = (box, name) }

    /// Changes a box with a location to a box of free space.
    ///
    /// - Parameter film: The film that contains the box, because some boxes contain offsets of other bytes in the film.
    func cleanLocation(in film: Film) {
        let content = box.content
        switch box.type {
        case "loci": recordLociPlace()
        case "gps ":
            // The box contains a version and a number, and then the offset and the size of each block.
            for entry in stride(from: 8, to: min(content.count, 1 << 20), by: 8) {
                guard let offset = content.number(entry, 4), let size = content.number(entry + 4, 4) else { break }
                for start in Set([offset, offset - film.start])
                where film.view.has("GPS ", at: start + 8) || film.view.has("freeGPS", at: start + 4) {
                    film.view.part(start + 8, size - 8).fill(0, size - 8, name)
                }
            }
        default:
            if let place = PlaceText.iso6709(content.bytes(0, min(content.count, 200)) ?? []) {
                content.search.add(FoundPlace(latitude: place.latitude, longitude: place.longitude))
            }
        }
        box.free(name)
    }

    /// Records the location of a box `loci`. The box contains a version, a language, a name and a role. The next values are the
    /// longitude, the latitude and the altitude as 16.16 numbers (3GPP TS 26.244 §8.8).
    private func recordLociPlace() {
        var reader = BoxReader(box.content, at: 6)
        guard reader.text() != nil, reader.number(1) != nil, let longitude = reader.number(4), let latitude = reader.number(4)
        else { return }
        func degrees(_ number: Int) -> Double { Double(Int32(truncatingIfNeeded: number)) / 65_536 }
        box.content.search.add(FoundPlace(latitude: degrees(latitude), longitude: degrees(longitude)))
    }

    // MARK: Keys and values

    /// Cleans QuickTime's keys with the values of `ilst`, and the names of iTunes.
    func cleanKeys() {
        let children = box.children
        let lists = children.filter { $0.type == "ilst" }.flatMap { Box.all(in: $0.content) }
        var keys: [Int: [UInt8]] = [:]
        for list in children where list.type == "keys" {
            var position = 8
            var index = 1
            while let size = list.content.number(position, 4), size >= 8, index < 100_000 {
                let key = list.content.bytes(position + 8, min(size - 8, 400)) ?? []
                keys[index] = key
                if LocationNames.isLocation(key) {
                    list.content.fill(position + 8, size - 8, with: UInt8(ascii: "-"), "key of \(name)")
                }
                position += size
                index += 1
            }
        }
        for item in lists {
            let index = item.content.search.isFinished ? 0 : number(item.type)
            let parts = Box.all(in: item.content)
            let label =
                item.type == "----" ? parts.first { $0.type == "name" }?.content.from(4).allBytes() ?? [] : keys[index] ?? []
            let places = KeyedText(key: label, text: text(of: parts)).location
            if places != nil || ["©xyz", "loci"].contains(item.type) {
                for place in places ?? [] { box.content.search.add(place) }
                recordPlace(item)
                item.free("location in \(name)")
            } else if item.type != "covr" {
                // The types 1 and 2 are text in UTF-8 and UTF-16.
                for data in parts where data.type == "data" && [1, 2].contains(data.content.number(0, 4)) {
                    OpaqueBytes(data.content.from(8), name).cleanText()
                }
                OpaqueBytes(item.content, name).clean()
            }
        }
    }

    /// Returns the first letters of the value of an item. In UTF-16, the letters of a coordinate are every second byte.
    private func text(of parts: [Box]) -> [UInt8] {
        let values = parts.filter { $0.type == "data" }.map { $0.content.bytes(8, min(400, max(0, $0.content.count - 8))) ?? [] }
        return Array(values.joined(separator: [UInt8(ascii: " ")]).filter { $0 != 0 }.prefix(400))
    }

    private func number(_ type: String) -> Int { type.unicodeScalars.reduce(0) { $0 << 8 | Int($1.value & 0xFF) } }

    private func recordPlace(_ item: Box) {
        // The value is a box `data` that begins with a type and a language.
        if let place = PlaceText.iso6709(
            item.content.bytes(min(16, item.content.count), min(200, max(0, item.content.count - 16))) ?? [])
        {
            item.content.search.add(FoundPlace(latitude: place.latitude, longitude: place.longitude))
        }
    }

    // MARK: Nikon

    /// Cleans a list of numbers, types, counts and values. The entries of a location have numbers from 0x0120.
    func cleanNikon() {
        let sizes = [1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8]
        for list in Box.all(in: box.content) where list.type == "NCTG" {
            var position = 0
            while let tag = list.content.number(position, 4), let type = list.content.number(position + 4, 2),
                let count = list.content.number(position + 6, 2)
            {
                let size = (sizes[type] ?? 1) * count
                if tag >> 16 == 0x0120, tag & 0xFFFF > 0 { list.content.fill(position + 8, size, name) }
                if tag == 0x0200_0039 || tag & 0xFFFF == 0x39 { list.content.fill(position + 8, size, name) }
                position += 8 + size
            }
        }
        OpaqueBytes(box.content, name).clean()
    }
}
