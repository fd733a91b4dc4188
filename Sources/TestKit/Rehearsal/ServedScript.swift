import BackgroundCommands
import FaultyServer
import Foundation
import ProcessSupport

/// A faulty server for the command line. The server responds as a script specifies and prints the requests, until it is interrupted.
struct ServedScript {
    let script: ScriptFile
    /// `true` to print one JSON document per line, for other programs.
    let json: Bool

    init(path: String, json: Bool) throws {
        let file = URL(exactPath: path)
        guard let text = try? String(contentsOf: file, encoding: .utf8) else {
            throw CommandFailure(.notFound, "\(path) cannot be read as text")
        }
        do throws(ScriptFile.Failure) {
            script = try ScriptFile(parsing: text, folder: file.deletingLastPathComponent())
        } catch {
            throw CommandFailure(.badData, "\(path):\(error.line): \(error.reason)")
        }
        self.json = json
    }

    func run() async throws {
        let server = try await FaultyServer.start()
        server.serve(script)
        try printAddress(server)
        var told: Set<Int> = []
        while true {
            let known = told
            // Each request is printed as soon as it ends. A request that hangs therefore does not delay the output of other
            // requests.
            let activity = try await server.waitUntil(timeout: .seconds(86_400 * 365)) { activity in
                activity.requests.contains { $0.outcome != .open && !known.contains($0.id) }
            }
            for request in activity.requests where request.outcome != .open && !told.contains(request.id) {
                told.insert(request.id)
                if json { try Self.printJSON(request) } else { Output.line(Self.words(for: request)) }
            }
        }
    }

    private func printAddress(_ server: FaultyServer) throws {
        var (url, authority) = (server.url, String?.none)
        if case .https(let certificate) = script.greeting {
            url = server.secureURL
            // A client must trust the authority. If the client does not trust the authority, the connection fails before the
            // client reaches the other faults of the server.
            if certificate != .selfSigned { authority = try server.certificateAuthority }
        }
        guard !json else { return try Self.printJSON(["url": url, "certificateAuthority": authority].compactMapValues { $0 }) }
        Output.line("Listening on \(url)")
        if let authority { Output.line(authority) }
    }

    private static func printJSON(_ value: some Encodable) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .custom { date, encoder in
            var container = encoder.singleValueContainer()
            try container.encode(Output.iso8601(date))
        }
        // The document contains text from the client. Control characters are removed, so that this text cannot control the
        // terminal.
        Output.line(Output.withoutControls(String(decoding: try encoder.encode(value), as: UTF8.self)))
    }

    private static func words(for request: RecordedRequest) -> String {
        "\(request.method) \(request.target): \(request.bodyByteCount) bytes in, status "
            + (request.status.map(String.init) ?? "none") + ", \(request.bodyBytesSent) bytes out, \(request.outcome.rawValue)"
    }
}
