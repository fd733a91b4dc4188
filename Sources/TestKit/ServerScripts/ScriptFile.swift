import Foundation

/// Routes in a text file, for servers that are started from a shell. ``grammar`` describes the format.
public struct ScriptFile: Sendable, Equatable {
    /// The description of the format, for authors of scripts.
    public static let grammar = #"""
        A script consists of lines. A line with a method and a path begins a route.
        The path is exact, or a prefix that ends with *. The indented lines below the
        line are the steps of the response. "then" begins the response to the next
        request.
        The last response is used for all further requests. # begins a comment.

          GET /file
            status 200
            header Content-Length: 11
            header ETag: "v1"
            body hello
            cut
          then
            file photo.jpg "v1"

          status CODE             sends the status line
          header NAME: VALUE      sends a header; the headers end automatically
          interim CODE            sends an interim response with this status, 100 to
            [NAME: VALUE]         199, with or without a header
          body TEXT               sends the text
          body-file PATH          sends the bytes of a file
          body-noise COUNT        sends this number of bytes
          drip SECONDS TEXT       sends the text byte by byte during this time
          chunk TEXT              sends a chunk of a chunked body
          last-chunk              sends the end of a chunked body
          file PATH ["ETAG"]      sends a complete response with a file or a range
          raw TEXT                sends the text without changes
          delay SECONDS           waits
          stop-reading            stops reading the request
          stall                   does nothing more
          cut                     closes the connection
          reset                   closes the connection with a TCP reset

        One of these lines can be the first step of a response. The server then begins
        the response before the end of the request:

          at-head                 begins before the body of the request
          after COUNT             begins after this number of bytes of the body

        A line that begins with "greet" is not indented. This line describes the
        connections of clients that use https://, for all routes:

          greet https [FAULT]     TLS with a certificate for localhost and 127.0.0.1.
                                  The certificate has no fault, or one of these
                                  faults: expired, not-yet-valid, another-host,
                                  another-authority, self-signed
          greet silence           the server does not respond to the TLS handshake
          greet hang-up           the server closes the connection
          greet garbage           the server sends bytes that are not TLS
          greet alert NUMBER      the server sends a fatal TLS alert: 40 no common
                                  cipher, 70 no common version, 80 internal error,
                                  112 unknown host name

        In a text \n, \r, \t and \\ are a new line, a return, a tab and a backslash.
        The server adds nothing, so a response without a length has no length. Paths
        begin at the folder of the script.
        """#

    /// An error in a script, with its line.
    public struct Failure: Error, Equatable, CustomStringConvertible {
        /// The number of the line, from 1.
        public let line: Int
        /// A phrase that describes the error for the author of the script.
        public let reason: String

        public var description: String { "line \(line): \(reason)" }
    }

    /// A route and its responses.
    public struct Route: Sendable, Equatable {
        /// The HTTP method in capital letters.
        public let method: String
        /// The path: an exact path, or a prefix that ends with `*`.
        public let path: String
        /// The responses, in order. The last response is used for all further requests.
        public var answers: [ResponseScript]
    }

    /// The routes, in the order of the file.
    public private(set) var routes: [Route] = []
    /// The greeting of connections.
    public private(set) var greeting = Greeting.http

    /// Parses a script.
    ///
    /// - Parameters:
    ///   - text: A script in the format of ``grammar``.
    ///   - folder: The folder for relative paths.
    /// - Throws: ``Failure``, with the line.
    public init(parsing text: String, folder: URL) throws(Failure) {
        // Editors on other systems write a byte order mark, and lines that end in CR LF.
        let lines = text.drop { $0 == "\u{FEFF}" }.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }
        for (index, line) in lines.enumerated() {
            let bare = line.drop { $0 == " " || $0 == "\t" }.trimmingCharacters(in: .whitespaces)
            if bare.isEmpty || bare.hasPrefix("#") { continue }
            do {
                if line.first == " " || line.first == "\t" {
                    try add(bare, folder)
                } else if bare.hasPrefix("greet ") {
                    greeting = try Self.greeting(bare.dropFirst(6).trimmingCharacters(in: .whitespaces))
                } else if bare == "then" {
                    guard let last = routes.indices.last else { throw Wrong("no route begins before this line") }
                    routes[last].answers.append([])
                } else {
                    try begin(bare)
                }
            } catch {
                throw Failure(line: index + 1, reason: (error as? Wrong)?.reason ?? "\(error)")
            }
        }
        guard !routes.isEmpty || greeting != .http else { throw Failure(line: 1, reason: "the script has no route") }
    }

    private struct Wrong: Error {
        let reason: String

        init(_ reason: String) { self.reason = reason }
    }

    private mutating func begin(_ line: String) throws {
        let words = line.split(separator: " ")
        guard words.count == 2, words[1].hasPrefix("/"), words[0].allSatisfy({ $0.isASCII && $0.isLetter }) else {
            throw Wrong("a route is a method and a path, such as GET /file; the steps of a route are indented")
        }
        routes.append(Route(method: words[0].uppercased(), path: String(words[1]), answers: [[]]))
    }

    private static func greeting(_ text: String) throws -> Greeting {
        let words = text.split(separator: " ")
        switch words.first {
        case "silence" where words.count == 1: return .silence
        case "hang-up" where words.count == 1: return .hangUp
        case "garbage" where words.count == 1: return .garbage
        case "https" where words.count < 3:
            guard let certificate = words.count == 1 ? .valid : ServerCertificate(rawValue: String(words[1])) else {
                throw Wrong("\"\(words[1])\" is not a certificate fault")
            }
            return .https(certificate)
        case "alert" where words.count == 2:
            guard let number = UInt8(words[1]) else { throw Wrong("a TLS alert is a number up to 255") }
            return .alert(number)
        default: throw Wrong("a greeting is https, silence, hang-up, garbage or alert NUMBER")
        }
    }

    private mutating func add(_ line: String, _ folder: URL) throws {
        guard let route = routes.indices.last, let answer = routes[route].answers.indices.last else {
            throw Wrong("no route begins before this line")
        }
        let word = String(line.prefix { $0 != " " })
        let rest = line.dropFirst(word.count).trimmingCharacters(in: .whitespaces)
        switch word {
        case "at-head", "after":
            guard routes[route].answers[answer].steps.isEmpty else { throw Wrong("\(word) must come before the steps") }
            routes[route].answers[answer].beginning = word == "after" ? .afterBodyBytes(try Self.count(rest)) : .atHead
        default: routes[route].answers[answer].steps.append(try Self.step(word, rest, folder))
        }
    }

    private static func step(_ word: String, _ rest: String, _ folder: URL) throws -> ResponseScript.Step {
        switch word {
        case "status": return .status(try status(rest))
        case "header": return .headers(try header(rest))
        case "interim":
            let parts = rest.split(separator: " ", maxSplits: 1)
            guard let code = parts.first.flatMap({ Int($0) }), (100...199).contains(code) else {
                throw Wrong("interim expects a status from 100 to 199")
            }
            return try .interim(code, parts.count > 1 ? header(parts[1].trimmingCharacters(in: .whitespaces)) : [:])
        case "body": return .body(.text(try text(rest)))
        case "body-file": return .body(try payload(rest, folder))
        case "body-noise": return .body(.pattern(try count(rest)))
        case "chunk": return .chunked(.text(try text(rest)))
        case "last-chunk": return .chunkEnd()
        case "drip":
            let parts = rest.split(separator: " ", maxSplits: 1)
            guard parts.count == 2 else { throw Wrong("drip expects a number of seconds and a text") }
            let bytes = Payload.text(try text(String(parts[1])))
            return .drip(bytes, chunkSize: 1, interval: try seconds(String(parts[0])) / Double(max(1, bytes.count - 1)))
        case "file":
            let tag = rest.lastIndex(of: " ").map { rest[rest.index(after: $0)...] }.flatMap {
                $0.hasSuffix("\"") ? String($0) : nil
            }
            let path = tag.map { String(rest.dropLast($0.count + 1)) } ?? rest
            return .resource(ServedFile(try payload(path, folder), etag: tag))
        case "raw": return .raw(.text(try text(rest)))
        case "delay": return .delay(try seconds(rest))
        case "stall": return .stall
        case "cut": return .cut
        case "reset": return .reset
        case "stop-reading": return .stopReading
        default: throw Wrong("\(word) is not a step")
        }
    }

    private static func header(_ line: String) throws -> HeaderList {
        guard let colon = line.firstIndex(of: ":"), colon > line.startIndex else { throw Wrong("a header is NAME: VALUE") }
        let value = line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
        return HeaderList([HeaderLine(String(line[..<colon]), try text(value))])
    }

    private static func status(_ text: String) throws -> Int {
        guard let code = Int(text), (100...999).contains(code) else { throw Wrong("\"\(text)\" is not a status") }
        return code
    }

    private static func count(_ text: String) throws -> Int {
        guard let count = Int(text), (0...(1 << 40)).contains(count) else { throw Wrong("\"\(text)\" is not a number of bytes") }
        return count
    }

    private static func seconds(_ text: String) throws -> Double {
        guard let seconds = Double(text), (0...86_400).contains(seconds) else {
            throw Wrong("\"\(text)\" is not a number of seconds")
        }
        return seconds
    }

    private static func text(_ written: String) throws -> String {
        var text = ""
        var isEscaped = false
        for character in written {
            if isEscaped {
                guard let meant = ["n": "\n", "r": "\r", "t": "\t", "\\": "\\"][character] else {
                    throw Wrong("\\\(character) is not a valid escape sequence")
                }
                text += meant
            } else if character != "\\" {
                text.append(character)
            }
            isEscaped = !isEscaped && character == "\\"
        }
        guard !isEscaped else { throw Wrong("an escape sequence is incomplete: use \\\\ for a backslash") }
        return text
    }

    private static func payload(_ path: String, _ folder: URL) throws -> Payload {
        let file = path.hasPrefix("/") ? URL(fileURLWithPath: path) : folder.appendingPathComponent(path)
        let attributes = try? FileManager.default.attributesOfItem(atPath: file.path)
        guard attributes?[.type] as? FileAttributeType == .typeRegular, let size = attributes?[.size] as? Int else {
            throw Wrong("\(file.path): no such file")
        }
        return .file(path: file.path, count: size)
    }
}
