/// A text whose key is stored in another part of the file, for example in a text chunk of PNG or in the list of keys of a film.
///
/// Only the key shows that a number such as "-33.868812" is a coordinate, so the key and the text are searched together.
struct KeyedText {
    private let keys: [[UInt8]]
    private let text: [UInt8]

    /// - Parameters:
    ///   - key: The key, with or without the prefix of a namespace, for example "exif:GPSLatitude" or "com.example.lat".
    ///   - text: The first bytes of the text, in UTF-8.
    init(key: some Sequence<UInt8>, text: some Sequence<UInt8>) {
        let key = Array(key.filter { $0 != 0 })
        let parts = [UInt8(ascii: ":"), UInt8(ascii: ".")].map { mark in Array(key.split(separator: mark).last ?? []) }
        keys = parts.reduce(into: [key]) { keys, part in if !keys.contains(part) { keys.append(part) } }
        self.text = Array(text)
    }

    /// Returns the coordinates if the text is a location, and `nil` otherwise. Some locations have no coordinates, for example the
    /// name of a city or a plus code.
    var location: [FoundPlace]? {
        let finds = keys.first { CoordinateName($0) != nil || Self.isLabelOfCode($0) }.map { key in
            CoordinateText(key + Array("=".utf8) + text).all()
        }
        guard keys.contains(where: LocationNames.isLocation) || finds?.isEmpty == false else { return nil }
        return finds?.flatMap(\.places) ?? []
    }

    private static func isLabelOfCode(_ key: [UInt8]) -> Bool { CoordinateText.labels.contains { key.starts(with: $0) } }
}
