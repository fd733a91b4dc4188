import Foundation

/// Whether a photo may leave the machine, after it was tried to take its location out. Pure.
///
/// The rule: never sent uncleaned in silence. What can be cleaned is; what cannot is held back, unless it is no photo of a
/// kind that is known and nothing in it looks like a place, and then that is said.
enum PhotoPrivacy: Equatable {
    /// - Parameter note: something the person should know.
    case send(removed: [String], note: String?)
    case hold(String)

    /// - Parameters:
    ///   - format: `nil`: not a picture of a kind that is known.
    ///   - looksLocated: something in the file, as it is now, looks like a place.
    init(format: PhotoFormat?, verdict: PhotoCleaner.Verdict, looksLocated: Bool) {
        let advice = "--keep-location sends it as it is"
        switch (verdict, format, looksLocated) {
        case (.clean, _, true):
            self = .hold("it may still say where it was taken after its metadata was cleaned; \(advice)")
        case (.clean(let removed), .some, false): self = .send(removed: removed, note: nil)
        case (.unreadable, .heic, _), (.unreadable, .avif, _), (.unreadable, .jxl, _), (.unreadable, .raw, _):
            self = .hold("\(format!.rawValue.uppercased()) photos cannot be cleaned of their location here; \(advice)")
        case (.unreadable(let why), _, true): self = .hold("it says where it was taken, and \(why); \(advice)")
        case (.unreadable(let why), .some, false):
            self = .send(removed: [], note: "\(why); nothing was found in it that says where it was taken")
        // Something was found and is still there, or nobody could look.
        case (.notCleaned(let why), .some, _), (.notCleaned(let why), nil, true): self = .hold("\(why); \(advice)")
        case (.interrupted, .some, _), (.interrupted, nil, true):
            self = .hold("its metadata cannot be read (the reader ended over it); \(advice)")
        case (.clean(let removed), nil, false): self = .send(removed: removed, note: Self.unknownKind)
        case (.unreadable, nil, false), (.notCleaned, nil, false), (.interrupted, nil, false):
            self = .send(removed: [], note: Self.unknownKind)
        }
    }

    private static let unknownKind =
        "not a photo of a kind that is known here; nothing was found in it that says where it was taken"
}
