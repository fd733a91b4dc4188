import TransferMachines

/// Puts header lines together into the one head that counts. Interim answers (1xx), the heads of followed redirects
/// and trailers pass through libcurl's header callback too; none of them is the answer.
struct HeadCollector {
    enum Step: Equatable {
        case more
        /// A block ended that is not the answer: 1xx, or a redirect that libcurl follows, and where to.
        case passing(redirect: String?)
        /// A 104: an upload can be resumed.
        case resumption(headers: [HeaderField])
        case final(status: Int, headers: [HeaderField])
        case refused(String)
    }

    /// Bytes of all header lines of an attempt together.
    static let maximumBytes = 256 * 1024
    /// Lines of one block.
    static let maximumFields = 1000

    private let followsRedirects: Bool
    /// libcurl answers the first question for a digest itself.
    private var answersChallenge: Bool
    private var bytes = 0
    private var status: Int?
    private var fields: [HeaderField] = []
    private var isDone = false

    init(followsRedirects: Bool, answersChallenge: Bool = false) {
        self.followsRedirects = followsRedirects
        self.answersChallenge = answersChallenge
    }

    /// One line with its line end, as libcurl hands it over.
    mutating func take(_ line: UnsafeRawBufferPointer) -> Step {
        bytes += line.count
        guard bytes <= Self.maximumBytes else { return .refused("more than \(Self.maximumBytes) bytes of headers") }
        // Trailers come after the head and are nobody's business here.
        guard !isDone else { return .more }
        var text = Substring(String(decoding: line, as: UTF8.self))
        while let last = text.last, last == "\r\n" || last == "\n" || last == "\r" { text.removeLast() }
        if text.isEmpty { return endOfBlock() }
        if status == nil {
            guard text.hasPrefix("HTTP/") else { return .refused("no status line") }
            let words = text.split(separator: " ", maxSplits: 2)
            guard words.count >= 2, let number = Int(words[1]), (100...999).contains(number) else {
                return .refused("no status")
            }
            status = number
            return .more
        }
        if text.first == " " || text.first == "\t" {
            // A folded line (obsolete, still sent) goes on with the value before it.
            if !fields.isEmpty { fields[fields.count - 1].value += " " + trimmed(text) }
            return .more
        }
        guard let colon = text.firstIndex(of: ":") else { return .more }
        guard fields.count < Self.maximumFields else { return .refused("more than \(Self.maximumFields) headers") }
        fields.append(HeaderField(String(text[..<colon]), trimmed(text[text.index(after: colon)...])))
        return .more
    }

    private mutating func endOfBlock() -> Step {
        guard let status else { return .more }
        // libcurl's own rule: any 3xx with a place to go, 304 included.
        let place = fields.first { $0.name.lowercased() == "location" && !$0.value.isEmpty }?.value
        let redirect = followsRedirects && (300..<400).contains(status) ? place : nil
        let isAnswered = answersChallenge && status == 401
        if isAnswered { answersChallenge = false }
        if status < 200 && status != 101 || redirect != nil || isAnswered {
            self.status = nil
            defer { fields.removeAll(keepingCapacity: true) }
            if status == 104 { return .resumption(headers: fields) }
            return .passing(redirect: redirect)
        }
        isDone = true
        return .final(status: status, headers: fields)
    }

    private func trimmed(_ text: Substring) -> String {
        var rest = text.drop(while: { $0 == " " || $0 == "\t" })
        while let last = rest.last, last == " " || last == "\t" { rest.removeLast() }
        return String(rest)
    }
}
