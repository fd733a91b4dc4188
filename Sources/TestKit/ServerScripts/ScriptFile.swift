import Foundation

/// Routes in a text file, for servers that are started from a shell. ``grammar`` describes the format.
public struct ScriptFile: Sendable, Equatable {
    /// The description of the format, for authors of scripts.
    public static let grammar = #"""
        A script is made of lines. A method and a path (exact, or a beginning and *)
        begin a route; indented lines below it are the steps of its answer; "then"
        begins the answer to the next request. The last answer stays. # begins a
        comment.

          GET /file
            status 200
            header Content-Length: 11
            header ETag: "v1"
            body hello
            cut
          then
            file photo.jpg "v1"

          status CODE             the status line
          header NAME: VALUE      a line of the head, which ends by itself
          interim CODE            an answer before the answer, 100 to 199, such as 103,
            [NAME: VALUE]         with a header or without
          body TEXT               bytes of the body
          body-file PATH          those of a file
          body-noise COUNT        so many bytes
          drip SECONDS TEXT       byte by byte, over so long
          chunk TEXT              a chunk of a chunked body
          last-chunk              the end of a chunked body
          file PATH ["ETAG"]      a whole answer from a file, ranges too
          raw TEXT                bytes as they are
          delay SECONDS           waits
          stop-reading            reads no more of the request
          stall                   does nothing more
          cut                     closes the connection
          reset                   the same with a TCP reset

        As first step, for an answer that does not wait for the end of the request:

          at-head                 it begins before the request's body
          after COUNT             it begins after so many bytes of it

        A line of its own, for clients that say https://, whatever the routes are:

          greet https [FAULT]     TLS with a certificate for localhost and 127.0.0.1: a
                                  right one, or expired, not-yet-valid, another-host,
                                  another-authority, self-signed
          greet silence           no handshake, for as long as they wait
          greet hang-up           the end instead of one
          greet garbage           what is no TLS
          greet alert NUMBER      a fatal TLS alert: 40 no common cipher, 70 no common
                                  version, 80 trouble inside, 112 no such name

        In a text \n, \r, \t and \\ are a new line, a return, a tab and a backslash.
        Nothing is added: an answer without a length has none. Paths begin at the
        script's folder.
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
        /// The method in capitals.
        public let method: String
        /// Exact, or a prefix ending in `*`.
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
                    guard let last = routes.indices.last else { throw Wrong("no route begins before it") }
                    routes[last].answers.append([])
                } else {
                    try begin(bare)
                }
            } catch {
                throw Failure(line: index + 1, reason: (error as? Wrong)?.reason ?? "\(error)")
            }
        }
        guard !routes.isEmpty || greeting != .http else { throw Failure(line: 1, reason: "no route is in it") }
    }

    private struct Wrong: Error {
        let reason: String

        init(_ reason: String) { self.reason = reason }
    }

    private mutating func begin(_ line: String) throws {
        let words = line.split(separator: " ")
        guard words.count == 2, words[1].hasPrefix("/"), words[0].allSatisfy({ $0.isASCII && $0.isLetter }) else {
            throw Wrong("a route is a method and a path, such as GET /file; its steps are indented")
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
            throw Wrong("no route begins before it")
        }
        let word = String(line.prefix { $0 != " " })
        let rest = line.dropFirst(word.count).trimmingCharacters(in: .whitespaces)
        switch word {
        case "at-head", "after":
            guard routes[route].answers[answer].steps.isEmpty else { throw Wrong("\(word) comes before the steps") }
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
                throw Wrong("interim wants a status from 100 to 199")
            }
            return try .interim(code, parts.count > 1 ? header(parts[1].trimmingCharacters(in: .whitespaces)) : [:])
        case "body": return .body(.text(try text(rest)))
        case "body-file": return .body(try payload(rest, folder))
        case "body-noise": return .body(.pattern(try count(rest)))
        case "chunk": return .chunked(.text(try text(rest)))
        case "last-chunk": return .chunkEnd()
        case "drip":
            let parts = rest.split(separator: " ", maxSplits: 1)
            guard parts.count == 2 else { throw Wrong("drip wants seconds and a text") }
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
        default: throw Wrong("\(word) is no step")
        }
    }

    private static func header(_ line: String) throws -> HeaderList {
        guard let colon = line.firstIndex(of: ":"), colon > line.startIndex else { throw Wrong("a header is NAME: VALUE") }
        let value = line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
        return HeaderList([HeaderLine(String(line[..<colon]), try text(value))])
    }

    private static func status(_ text: String) throws -> Int {
        guard let code = Int(text), (100...999).contains(code) else { throw Wrong("\"\(text)\" is no status") }
        return code
    }

    private static func count(_ text: String) throws -> Int {
        guard let count = Int(text), (0...(1 << 40)).contains(count) else { throw Wrong("\"\(text)\" is not a number of bytes") }
        return count
    }

    private static func seconds(_ text: String) throws -> Double {
        guard let seconds = Double(text), (0...86_400).contains(seconds) else { throw Wrong("\"\(text)\" are no seconds") }
        return seconds
    }

    private static func text(_ written: String) throws -> String {
        var text = ""
        var isEscaped = false
        for character in written {
            if isEscaped {
                guard let meant = ["n": "\n", "r": "\r", "t": "\t", "\\": "\\"][character] else {
                    throw Wrong("\\\(character) stands for nothing")
                }
                text += meant
            } else if character != "\\" {
                text.append(character)
            }
            isEscaped = !isEscaped && character == "\\"
        }
        guard !isEscaped else { throw Wrong("a \\ is at the end") }
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
