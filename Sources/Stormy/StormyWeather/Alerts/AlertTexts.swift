/// The texts of a warning in one language, each on one line without control characters.
package struct AlertTexts: Sendable, Hashable, Codable {
    /// A sentence about the event.
    package let headline: String?
    /// The description of the event.
    package let description: String?
    /// The advice to the reader.
    package let instruction: String?

    /// The maximum number of characters of each text.
    package static let (longestHeadline, longestDescription, longestInstruction) = (160, 1500, 600)

    /// - Returns: `nil` if all texts are empty.
    init?(headline: String?, description: String?, instruction: String?) {
        func line(_ text: String?, _ limit: Int) -> String? {
            guard let line = text?.singleLine(limit: limit), !line.isEmpty else { return nil }
            return line
        }
        self.headline = line(headline, Self.longestHeadline)
        self.description = line(description, Self.longestDescription)
        self.instruction = line(instruction, Self.longestInstruction)
        if self.headline == nil, self.description == nil, self.instruction == nil { return nil }
    }
}
