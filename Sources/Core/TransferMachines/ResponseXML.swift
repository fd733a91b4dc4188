import CLibexpat
import Foundation

/// The XML of a server's response, as a tree of elements with local names. The size, the depth and the number of elements are
/// limited.
package final class ResponseXML {
    package let name: String
    package fileprivate(set) var children: [ResponseXML] = []
    /// The text of this element without surrounding blanks. The texts of its child elements are not included.
    package fileprivate(set) var text = ""

    /// The attributes of the element. The keys are the attribute names in the document.
    package let attributes: [String: String]

    fileprivate init(_ name: String, _ attributes: [String: String]) { (self.name, self.attributes) = (name, attributes) }

    /// The maximum number of bytes of a document.
    package static let maximumBytes = 16 << 20
    /// The maximum depth of nested elements.
    package static let maximumDepth = 32
    /// The maximum number of elements and attributes together. This maximum allows one element or attribute per 16 bytes of the
    /// longest document. In real responses, an element has about 36 bytes.
    package static let maximumNodes = maximumBytes / 16

    /// Reads a document in UTF-8, UTF-16, ISO-8859-1, US-ASCII or an encoding of ``DeclaredEncoding``, with or without a byte
    /// order mark. Comments and processing instructions are skipped. No other file is read.
    ///
    /// - Returns: `nil` if the document is not well-formed, exceeds a limit, or declares entities or attributes. Such
    ///   declarations are not accepted, because a single line can expand to gigabytes.
    package static func read(_ data: Data) -> ResponseXML? { try? parse(data) }

    /// The reason why a document cannot be read.
    package enum Refusal: Error {
        /// The document has more than ``maximumNodes`` elements and attributes.
        case tooManyElements
        case notReadable
    }

    /// Reads a document as ``read(_:)`` does, and throws the reason if the document cannot be read.
    package static func parse(_ data: Data) throws(Refusal) -> ResponseXML {
        guard !data.isEmpty, data.count <= maximumBytes else { throw .notReadable }
        let encoding = DeclaredEncoding(of: data)
        // The encoding that is passed to the parser has priority over the declaration in the document.
        guard let document = encoding.map({ $0.utf8(data) }) ?? data,
            let parser = encoding == nil ? XML_ParserCreate(nil) : XML_ParserCreate("UTF-8")
        else { throw .notReadable }
        defer { XML_ParserFree(parser) }
        return try ResponseReader(parser).read(document)
    }

    package subscript(name: String) -> ResponseXML? { children.first { $0.name == name } }

    package func all(_ name: String) -> [ResponseXML] { children.filter { $0.name == name } }

    /// Returns the first element with this name in document order. The search begins with this element and continues with the
    /// elements below it.
    package func first(_ name: String) -> ResponseXML? {
        if self.name == name { return self }
        for child in children { if let found = child.first(name) { return found } }
        return nil
    }
}

/// Builds the tree from the events of the XML parser expat.
private final class ResponseReader {
    private let parser: XML_Parser
    private var root: ResponseXML?
    private var open: [(element: ResponseXML, text: [UInt8])] = []
    private var nodeCount = 0
    /// `true` after the document was refused. expat may call one more handler after it was stopped.
    private var isRefused = false
    private var hasTooManyElements = false

    init(_ parser: XML_Parser) { self.parser = parser }

    func read(_ data: Data) throws(ResponseXML.Refusal) -> ResponseXML {
        XML_SetUserData(parser, Unmanaged.passUnretained(self).toOpaque())
        XML_SetElementHandler(
            parser, { reader, name, attributes in ResponseReader.of(reader)?.begin(name, attributes) },
            { reader, _ in ResponseReader.of(reader)?.end() })
        XML_SetCharacterDataHandler(parser) { reader, bytes, count in ResponseReader.of(reader)?.append(bytes, Int(count)) }
        XML_SetEntityDeclHandler(parser) { reader, _, _, _, _, _, _, _, _ in ResponseReader.of(reader)?.refuse() }
        XML_SetAttlistDeclHandler(parser) { reader, _, _, _, _, _ in ResponseReader.of(reader)?.refuse() }
        // A document with an entity that another file declares is refused, because the text of the entity would not be in the
        // tree.
        XML_SetSkippedEntityHandler(parser) { reader, _, _ in ResponseReader.of(reader)?.refuse() }
        let status = withExtendedLifetime(self) {
            data.withUnsafeBytes { bytes in
                // Feeds can begin with an empty line. A declaration after an empty line is not well-formed.
                let document = UnsafeRawBufferPointer(rebasing: bytes.drop { [0x20, 0x09, 0x0A, 0x0D].contains($0) })
                return XML_Parse(parser, document.baseAddress?.assumingMemoryBound(to: CChar.self), CInt(document.count), 1)
            }
        }
        if hasTooManyElements { throw .tooManyElements }
        guard status == XML_STATUS_OK, !isRefused, let root else { throw .notReadable }
        return root
    }

    private static func of(_ pointer: UnsafeMutableRawPointer?) -> ResponseReader? {
        pointer.map { Unmanaged<ResponseReader>.fromOpaque($0).takeUnretainedValue() }
    }

    private func refuse() {
        isRefused = true
        XML_StopParser(parser, XML_Bool(XML_FALSE))
    }

    private func begin(_ name: UnsafePointer<CChar>?, _ list: UnsafeMutablePointer<UnsafePointer<CChar>?>?) {
        let attributeCount = Int(XML_GetSpecifiedAttributeCount(parser)) / 2
        nodeCount += 1 + attributeCount
        hasTooManyElements = nodeCount > ResponseXML.maximumNodes
        guard !isRefused, let name, let list, open.count < ResponseXML.maximumDepth, !hasTooManyElements else {
            return refuse()
        }
        var attributes: [String: String] = [:]
        for index in 0..<attributeCount {
            guard let key = list[2 * index], let value = list[2 * index + 1] else { break }
            attributes[String(cString: key)] = String(cString: value)
        }
        let qualified = String(cString: name)
        let local = qualified.split(separator: ":").last.map(String.init) ?? qualified
        let element = ResponseXML(local, attributes)
        if let parent = open.last { parent.element.children.append(element) } else { root = element }
        open.append((element, []))
    }

    private func append(_ bytes: UnsafePointer<CChar>?, _ count: Int) {
        guard !isRefused, !open.isEmpty, let bytes else { return }
        let text = UnsafeRawBufferPointer(start: bytes, count: count)
        open[open.count - 1].text.append(contentsOf: text)
    }

    private func end() {
        guard !isRefused, let (element, text) = open.popLast() else { return }
        element.text = String(decoding: text, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    }
}
