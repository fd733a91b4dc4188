import CNlohmannJSON

/// A JSON value that is read without assumptions about its type. Services may send null, text or invalid values instead of
/// numbers, and an invalid hour must not affect the other hours.
struct JSONValue {
    private let document: JSONDocument
    private let index: Int

    /// `nil` if the text is not JSON, or if a number in it is too large for a `Double`. Parsing takes 12 ms per MB. After the
    /// parsing, only the values that are read take time.
    init?(_ text: some Collection<UInt8>) {
        guard let document = JSONDocument(text) else { return nil }
        self.init(document, 0)
    }

    private init(_ document: JSONDocument, _ index: Int) { (self.document, self.index) = (document, index) }

    /// Returns the value of a key. If a key occurs twice, the last value is returned. The search compares only the keys of this
    /// object, and skips the content of the values.
    subscript(key: String) -> JSONValue? {
        guard isObject else { return nil }
        var found: Int?
        var at = index + 1
        while at < value.end {
            if document.text(at) == key { found = at + 1 }
            at = Int(document.values[at + 1].end)
        }
        return found.map { JSONValue(document, $0) }
    }

    var isObject: Bool { value.kind == cjson_kind_object }

    var elements: [JSONValue]? {
        guard value.kind == cjson_kind_list else { return nil }
        var elements: [JSONValue] = []
        var at = index + 1
        while at < value.end {
            elements.append(JSONValue(document, at))
            at = Int(document.values[at].end)
        }
        return elements
    }

    var text: String? { value.kind == cjson_kind_text ? document.text(index) : nil }
    var isTrue: Bool { value.kind == cjson_kind_true }

    /// A number. The JSON library refuses infinite numbers.
    var finite: Double? { value.kind == cjson_kind_number ? value.number : nil }

    private var value: cjson_value { document.values[index] }
}

/// The parsed values of one JSON text. The object owns the values.
private final class JSONDocument {
    let values: UnsafePointer<cjson_value>
    private let document: OpaquePointer
    private let bytes: UnsafeRawPointer

    init?(_ text: some Collection<UInt8>) {
        let read: (UnsafeBufferPointer<UInt8>) -> OpaquePointer? = { bytes in
            bytes.withMemoryRebound(to: CChar.self) { text in text.baseAddress.flatMap { cjson_read($0, text.count) } }
        }
        guard let document = text.withContiguousStorageIfAvailable(read) ?? Array(text).withUnsafeBufferPointer(read) else {
            return nil
        }
        self.document = document
        values = cjson_values(document)
        bytes = UnsafeRawPointer(cjson_bytes(document))
    }

    deinit { cjson_free(document) }

    /// Returns the text of a value. The library has verified that the text is UTF-8.
    func text(_ index: Int) -> String {
        let text = values[index].text
        return String(decoding: UnsafeRawBufferPointer(start: bytes + Int(text.start), count: Int(text.count)), as: UTF8.self)
    }
}
