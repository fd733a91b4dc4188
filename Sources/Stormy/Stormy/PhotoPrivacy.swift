import Foundation

/// The decision whether a photo may be sent, after the cleaner tried to remove its location. The decision has no side effects.
///
/// A photo or a video is sent if the cleaner proved that the file has no location. A file of an unknown format is sent if it
/// contains nothing that looks like a location. A note states that this result is not certain. All other files are not sent.
enum PhotoPrivacy: Equatable {
    /// - Parameter note: A text for the user.
    case send(removed: [String], note: String?)
    case hold(String)

    /// The decision to send the file unchanged.
    static let unchanged = PhotoPrivacy.send(removed: [], note: nil)

    /// - Parameters:
    ///   - format: The format of the picture. `nil` if the file is not a picture of a known format.
    ///   - looksLocated: `true` if something in the file looks like a location. The value is not used if the cleaner proved that
    ///     the file has no location.
    init(format: PhotoFormat?, verdict: PhotoCleaner.Verdict, looksLocated: Bool) {
        let advice = "--keep-location uploads the file unchanged"
        switch (verdict, format, looksLocated) {
        // The cleaner proved that the file has no location. The file may also be a video, which is not a photo of a known format.
        case (.clean(let removed), _, _): self = .send(removed: removed, note: nil)
        case (.unreadable, .heic, _), (.unreadable, .avif, _), (.unreadable, .jxl, _), (.unreadable, .raw, _):
            self = .hold(
                "Stormy cannot read this \(format!.rawValue.uppercased()) file, so a location in it cannot be removed; \(advice)")
        case (.unreadable(let why), _, true): self = .hold("the file contains a location, and \(why); \(advice)")
        case (.unreadable(let why), .some, false):
            self = .send(removed: [], note: "\(why); if the file contains a location, the location was not removed")
        // The file contains a location that could not be removed, or the cleaner could not be started.
        case (.notCleaned(let why), _, _): self = .hold("\(why); \(advice)")
        case (.interrupted, _, _):
            self = .hold("the metadata of the file cannot be read (photo-cleaner ended before it finished); \(advice)")
        case (.unreadable, nil, false):
            self = .send(removed: [], note: Self.unknownKind)
        }
    }

    private static let unknownKind =
        "the file is not a known kind of photo; if the file contains a location, the location was not removed"
}
