import Foundation
import FoundationXML

/// A server's answer in XML, as a tree of local names. Only what fits in memory and is no deeper than such answers are.
package final class AnswerXML {
    package let name: String
    package private(set) var children: [AnswerXML] = []
    /// Of this element alone, without surrounding blanks.
    package private(set) var text = ""

    package let attributes: [String: String]

    private init(_ name: String, _ attributes: [String: String]) { (self.name, self.attributes) = (name, attributes) }

    /// `nil`: not well-formed, or nothing like an answer. No entity of its own and nothing outside it is looked at.
    package static func read(_ data: Data) -> AnswerXML? {
        // Declared entities can make a page of a line.
        guard !data.isEmpty, isPlain(data), data.range(of: Data("<!DOCTYPE".utf8)) == nil else { return nil }
        let parser = XMLParser(data: data)
        parser.shouldProcessNamespaces = true
        let reader = Reader()
        parser.delegate = reader
        // One that was cut off is no error of Foundation's parser.
        guard parser.parse(), !reader.isTooLarge, reader.isWhole else { return nil }
        return reader.root
    }

    /// UTF-8 throughout, and nothing else by its own word, in which a declaration would not be seen; and without processing instructions,
    /// which no answer has. At a name that is no UTF-8, and at an instruction without data (`<?z?>`), Foundation's parser traps (both
    /// found by fuzzing), which would be the end of the agent.
    private static func isPlain(_ bytes: Data) -> Bool {
        let data = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? bytes.dropFirst(3) : bytes
        guard String(validating: data, as: UTF8.self) != nil else { return false }
        // Behind the XML declaration.
        let declarations = [" ", "\t", "\r", "\n"].map { Data("<?xml\($0)".utf8) }
        let rest = declarations.contains { data.starts(with: $0) } ? data.dropFirst(6) : data
        guard rest.range(of: Data("<?".utf8)) == nil else { return false }
        let text = String(decoding: data.prefix(256), as: UTF8.self)
        guard !text.contains("\0") else { return false }
        guard text.hasPrefix("<?xml"), let end = text.range(of: "?>") else { return true }
        guard let start = text[..<end.lowerBound].range(of: "encoding") else { return true }
        return text[start.upperBound..<end.lowerBound].lowercased().contains("utf-8")
    }

    package subscript(name: String) -> AnswerXML? { children.first { $0.name == name } }

    package func all(_ name: String) -> [AnswerXML] { children.filter { $0.name == name } }

    /// Wherever below it stands first.
    package func first(_ name: String) -> AnswerXML? {
        if self.name == name { return self }
        for child in children { if let found = child.first(name) { return found } }
        return nil
    }

    private final class Reader: NSObject, XMLParserDelegate {
        private static let maximumDepth = 32
        private static let maximumElements = 200_000

        private(set) var root: AnswerXML?
        private(set) var isTooLarge = false
        private var open: [AnswerXML] = []
        private var elementCount = 0

        /// All that began has ended.
        var isWhole: Bool { open.isEmpty }

        func parser(
            _ parser: XMLParser, didStartElement name: String, namespaceURI: String?, qualifiedName: String?,
            attributes: [String: String]
        ) {
            elementCount += 1
            guard open.count < Self.maximumDepth, elementCount <= Self.maximumElements else {
                isTooLarge = true
                return parser.abortParsing()
            }
            let element = AnswerXML(name, attributes)
            if let parent = open.last { parent.children.append(element) } else { root = element }
            open.append(element)
        }

        func parser(_ parser: XMLParser, didEndElement name: String, namespaceURI: String?, qualifiedName: String?) {
            guard let element = open.popLast() else { return }
            element.text = element.text.trimmingCharacters(in: .whitespacesAndNewlines)
        }

        func parser(_ parser: XMLParser, foundCharacters text: String) { open.last?.text += text }
    }
}
