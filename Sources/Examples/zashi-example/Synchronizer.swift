import BackgroundTransfer
import Foundation

/// Downloads the new blocks of a chain, one by one. Each block is stored when it is received, so no block is lost if the work is
/// stopped.
///
/// The server's address is `ZASHI_SERVER`. `/height` returns the number of blocks, and `/block/N` returns block N.
struct Synchronizer: Sendable {
    private let server = ProcessInfo.processInfo.environment["ZASHI_SERVER"].flatMap(URL.init(string:))
    private let file: URL = {
        let environment = ProcessInfo.processInfo.environment
        let home = environment["XDG_DATA_HOME"] ?? (environment["HOME"] ?? "/tmp") + "/.local/share"
        return URL(fileURLWithPath: home).appendingPathComponent("zashi-example/blocks")
    }()

    /// The number of stored blocks. Each line of the file is one block.
    var height: Int {
        ((try? String(contentsOf: file, encoding: .utf8)) ?? "").split(separator: "\n").count
    }

    /// Returns `true` if all blocks are stored, and `false` after a stop or an error. After a stop or an error, the received
    /// blocks are kept.
    func run() async -> Bool {
        guard let server else { return false }
        do {
            try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            if !FileManager.default.fileExists(atPath: file.path) { try Data().write(to: file) }
            let blocks = try FileHandle(forWritingTo: file)
            defer { try? blocks.close() }
            try blocks.seekToEnd()
            guard let top = Int(try await fetch(server.appendingPathComponent("height"))) else { return false }
            var next = height
            while next < top {
                try Task.checkCancellation()
                let block = try await fetch(server.appendingPathComponent("block/\(next)"))
                try blocks.write(contentsOf: Data("\(block)\n".utf8))
                try blocks.synchronize()
                next += 1
            }
            return true
        } catch {
            print("stopped at \(height): \(error)")
            return false
        }
    }

    private func fetch(_ url: URL) async throws -> String {
        let (data, response) = try await URLSession.shared.data(for: URLRequest(url: url))
        guard (response as? HTTPURLResponse)?.statusCode == 200 else { throw URLError(.badServerResponse) }
        return String(decoding: data, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    }
}
