import NIOHTTP1

/// Follows what a script says about the length of its answer, to know whether the connection can go on.
struct AnswerFraming {
    private enum Head { case none, open, ended }

    private var head = Head.none
    private var length: Int?
    private var isChunked = false
    private var isBodiless = false
    private(set) var saysClose = false
    /// Body bytes sent.
    var sent = 0
    var hasLastChunk = false
    /// Raw bytes were sent: nothing is known.
    var isForeign = false

    mutating func begin(status: Int, method: String) {
        head = .open
        isBodiless = method == "HEAD" || status == 204 || status == 304
    }

    mutating func announce(_ list: HeaderList) {
        if let text = list["Content-Length"] { length = Int(text) }
        if list.tokens("Transfer-Encoding").contains("chunked") { isChunked = true }
        if list.tokens("Connection").contains("close") { saysClose = true }
    }

    /// The empty line, once.
    mutating func endHead() -> String {
        guard head == .open else { return "" }
        head = .ended
        return "\r\n"
    }

    /// The client can tell where the answer ended, and that is where it did end.
    var isDelimited: Bool {
        if isForeign || head == .none { return false }
        if isBodiless { return true }
        if isChunked { return hasLastChunk }
        return length == sent
    }

    /// Not shorter than announced. An answer that ends with the connection is whole by definition.
    var isWhole: Bool {
        if isForeign || isDelimited { return true }
        if head == .none || isChunked { return false }
        return length.map { sent >= $0 } ?? true
    }

    /// The usual words for a status. NIO does not know 103.
    static func reason(_ code: Int) -> String {
        code == 103 ? "Early Hints" : HTTPResponseStatus(statusCode: code).reasonPhrase
    }
}
