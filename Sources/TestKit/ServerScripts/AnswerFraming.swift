/// Follows what a script says about the length of its answer, to know whether the connection can go on.
package struct AnswerFraming {
    private enum Head { case none, open, ended }

    package init() {}

    private var head = Head.none
    private var length: Int?
    private var isChunked = false
    private var isBodiless = false
    package private(set) var saysClose = false
    /// Body bytes sent.
    package var sent = 0
    package var hasLastChunk = false
    /// Raw bytes were sent: nothing is known.
    package var isForeign = false

    package mutating func begin(status: Int, method: String) {
        head = .open
        isBodiless = method == "HEAD" || status == 204 || status == 304
    }

    package mutating func announce(_ list: HeaderList) {
        if let text = list["Content-Length"] { length = Int(text) }
        if list.tokens("Transfer-Encoding").contains("chunked") { isChunked = true }
        if list.tokens("Connection").contains("close") { saysClose = true }
    }

    /// The empty line, once.
    package mutating func endHead() -> String {
        guard head == .open else { return "" }
        head = .ended
        return "\r\n"
    }

    /// The client can tell where the answer ended, and that is where it did end.
    package var isDelimited: Bool {
        if isForeign || head == .none { return false }
        if isBodiless { return true }
        if isChunked { return hasLastChunk }
        return length == sent
    }

    /// Not shorter than announced. An answer that ends with the connection is whole by definition.
    package var isWhole: Bool {
        if isForeign || isDelimited { return true }
        if head == .none || isChunked { return false }
        return length.map { sent >= $0 } ?? true
    }
}
