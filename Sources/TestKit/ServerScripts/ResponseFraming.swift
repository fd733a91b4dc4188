/// Tracks the length that a script announces for its response. This length determines whether the connection can be reused.
package struct ResponseFraming {
    private enum Head { case none, open, ended }

    package init() {}

    private var head = Head.none
    private var length: Int?
    private var isChunked = false
    private var isBodiless = false
    package private(set) var announcesClose = false
    /// The number of body bytes that were sent.
    package var sent = 0
    package var hasLastChunk = false
    /// `true` if raw bytes were sent. The length of the response is then not known.
    package var isForeign = false

    package mutating func begin(status: Int, method: String) {
        head = .open
        isBodiless = method == "HEAD" || status == 204 || status == 304
    }

    package mutating func announce(_ list: HeaderList) {
        if let text = list["Content-Length"] { length = Int(text) }
        if list.tokens("Transfer-Encoding").contains("chunked") { isChunked = true }
        if list.tokens("Connection").contains("close") { announcesClose = true }
    }

    /// Returns the empty line that ends the headers. Later calls return an empty text.
    package mutating func endHead() -> String {
        guard head == .open else { return "" }
        head = .ended
        return "\r\n"
    }

    /// `true` if the client can determine where the response ends, and the response ended at this place.
    package var isDelimited: Bool {
        if isForeign || head == .none { return false }
        if isBodiless { return true }
        if isChunked { return hasLastChunk }
        return length == sent
    }

    /// `true` if the response has at least the announced length. A response that ends with the connection is always complete.
    package var isWhole: Bool {
        if isForeign || isDelimited { return true }
        if head == .none || isChunked { return false }
        return length.map { sent >= $0 } ?? true
    }
}
