import Foundation

/// A JSON file that Google Photos exports with each photo (Google Takeout).
struct GoogleSidecar {
    /// The time at which the photo was taken, in seconds since 1970. `nil` if the file has no valid time.
    let takenAt: Int?

    /// The maximum size in bytes. Files of Google Photos have a few kilobytes.
    private static let longest = 1 << 20
    /// Google cuts the name of the file, without `.json`, to this number of characters.
    private static let longestName = 46

    /// Returns `nil` if the file cannot be read, or does not come from Google Photos.
    init?(path: String) {
        struct Content: Decodable {
            struct Time: Decodable { let timestamp: String }

            let title: String
            let photoTakenTime: Time?
            let creationTime: Time?
        }

        guard let data = OriginalBytes.read(path, limit: Self.longest),
            let content = try? JSONDecoder().decode(Content.self, from: data),
            content.photoTakenTime != nil || content.creationTime != nil
        else { return nil }
        takenAt = (content.photoTakenTime?.timestamp).flatMap { Int($0) }
    }

    /// Returns the possible names of the JSON file of a photo.
    ///
    /// Since 2024, the name is `photo.jpg.supplemental-metadata.json`, cut to 46 characters before `.json`. Earlier, the name was
    /// `photo.jpg.json`. For `photo(1).jpg`, the number is at the end: `photo.jpg(1).json`.
    static func names(of photo: String) -> [String] {
        var (name, number) = (photo, "")
        if let match = photo.wholeMatch(of: /(.+)(\(\d+\))(\.[^.]+)/) { (name, number) = ("\(match.1)\(match.3)", "\(match.2)") }
        let long = "\(name).supplemental-metadata"
        return [name, String(name.prefix(longestName)), long, String(long.prefix(longestName))].map { "\($0)\(number).json" }
    }
}
