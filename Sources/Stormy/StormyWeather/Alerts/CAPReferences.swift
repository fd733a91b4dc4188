import Foundation

/// This extension reads the references of a CAP document.
extension CAPDocument {
    /// A reference to a message.
    typealias Reference = (sender: String, identifier: String)

    /// Returns the identifier that ``AlertBook`` uses for a message. Two senders may use the same identifier, so the sender is
    /// part of the identifier. Upper and lower case of a sender are not distinguished.
    static func name(_ sender: String, _ identifier: String) -> String {
        sender.isEmpty ? identifier : "\(sender.lowercased()),\(identifier)"
    }

    /// Reads identifiers without senders, for a service whose identifiers are globally unique.
    static func references(_ text: String) -> [String] { references(text, of: "").map(\.identifier) }

    /// Reads triples of sender, identifier and time. The parts of a triple are separated by commas. Triples are separated by
    /// blanks.
    ///
    /// Other forms are also read, because a cancellation without its references would cancel nothing. These forms are senders
    /// with blanks, blanks after commas, commas between triples, and triples without a time or a sender.
    ///
    /// - Parameter own: the sender of the document, which is used if a reference has no sender.
    static func references(_ text: String, of own: String) -> [Reference] {
        let words = text.split(whereSeparator: \.isWhitespace).map { $0.split(separator: ",", omittingEmptySubsequences: false) }
        if words.allSatisfy({ $0.count == 3 }) { return words.map { (String($0[0]), String($0[1])) }.filter(isUsable) }
        let own = compact(own)
        var marked = " " + compact(text)
        if !own.isEmpty {
            for start in [" ", ","] {
                marked = marked.replacingOccurrences(of: start + own + ",", with: "\n", options: .caseInsensitive)
            }
        }
        let pieces = marked.split(separator: "\n", omittingEmptySubsequences: false)
        return
            (loose(pieces[0].drop { $0 == " " }, own)
            + pieces.dropFirst().flatMap { piece -> [Reference] in
                guard let comma = piece.firstIndex(of: ",") else { return loose(piece, own) }
                return [(own, String(piece[..<comma]))] + loose(piece[comma...].dropFirst(), own)
            }).filter(isUsable)
    }

    /// Returns the text with one blank between words, and without blanks next to commas.
    private static func compact(_ text: String) -> String {
        text.replacing("\"", with: "").split(whereSeparator: \.isWhitespace).joined(separator: " ")
            .replacing(" ,", with: ",").replacing(", ", with: ",")
    }

    private static func isUsable(_ reference: Reference) -> Bool { !reference.identifier.isEmpty }

    private static func isTime(_ word: Substring) -> Bool { ServiceTime.date(String(word), utcOffset: 0) != nil }

    /// Reads references that do not begin with the sender of the document. A time is the last part of a reference.
    private static func loose(_ text: Substring, _ own: String) -> [Reference] {
        var (found, fields): ([Reference], [Substring]) = ([], [])
        for field in text.split(separator: ",") {
            let word = field.prefix { $0 != " " }
            if isTime(word) {
                found += untimed(fields, own)
                let rest = field.dropFirst(word.count + 1)
                fields = rest.isEmpty ? [] : [rest]
            } else {
                fields.append(field)
            }
        }
        return found + untimed(fields, own)
    }

    private static func untimed(_ fields: [Substring], _ own: String) -> [Reference] {
        guard let last = fields.last, fields.count > 1 else {
            // Words such as "none" are not identifiers. If such words counted as identifiers, all messages with the same word
            // would count as one warning.
            let words = (fields.first ?? "").split(separator: " ").filter { $0.contains { ("1"..."9").contains($0) } }
            return words.filter { !isTime($0) }.map { (own, String($0)) }
        }
        let sender = fields.dropLast().joined(separator: ",")
        let words = (sender + "," + last).split(separator: " ").map { $0.split(separator: ",") }
        if words.count > 1, words.allSatisfy({ (2...3).contains($0.count) }) {
            return words.map { (String($0[0]), String($0[1])) }
        }
        return [(sender, String(last))]
    }
}
