import TransferMachines

/// Collects header lines into the headers of the final response. libcurl's header callback also receives interim responses (1xx),
/// headers of followed redirects, and trailers.
struct HeadCollector {
    enum Step: Equatable {
        case more
        /// The headers of a response ended, but this response is not the final response. The response is an interim response
        /// (1xx), a digest challenge, or a redirect that libcurl follows. `redirect` is the target of the redirect.
        case passing(redirect: String?)
        /// The headers of a 104 response ended. The server supports resumption of the upload.
        case resumption(headers: [HeaderField])
        case final(status: Int, headers: [HeaderField])
        case refused(String)
    }

    /// The maximum number of bytes of all header lines of an attempt.
    static let maximumBytes = 256 * 1024
    /// The maximum number of header lines of one response.
    static let maximumFields = 1000

    private let followsRedirects: Bool
    /// `true` until libcurl has responded to the first digest challenge.
    private var answersChallenge: Bool
    private var bytes = 0
    private var status: Int?
    private var fields: [HeaderField] = []
    private var isDone = false

    init(followsRedirects: Bool, answersChallenge: Bool = false) {
        self.followsRedirects = followsRedirects
        self.answersChallenge = answersChallenge
    }

    /// Handles a header line that libcurl passed, including its line end.
    mutating func add(_ line: UnsafeRawBufferPointer) -> Step {
        bytes += line.count
        guard bytes <= Self.maximumBytes else {
            return .refused("the response has more than \(Self.maximumBytes) bytes of headers")
        }
        // Trailers follow the body and are not used here.
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
            // A folded line continues the value of the previous line. This form is obsolete, but some servers still send it.
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
        // libcurl treats every 3xx status with a `Location` as a redirect, including 304.
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
