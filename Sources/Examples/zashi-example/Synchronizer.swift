import BackgroundTransfer
import Foundation

/// Fetches what a chain has grown by, block by block; each is kept once it is there, so that stopping costs nothing.
///
/// The server is named by `ZASHI_SERVER`: `/height` is the number of blocks, `/block/N` the Nth.
struct Synchronizer: Sendable {
    private let server = ProcessInfo.processInfo.environment["ZASHI_SERVER"].flatMap(URL.init(string:))
    private let file: URL = {
        let environment = ProcessInfo.processInfo.environment
        let home = environment["XDG_DATA_HOME"] ?? (environment["HOME"] ?? "/tmp") + "/.local/share"
        return URL(fileURLWithPath: home).appendingPathComponent("zashi-example/blocks")
    }()

    /// Blocks that are here, a line each.
    var height: Int {
        ((try? String(contentsOf: file, encoding: .utf8)) ?? "").split(separator: "\n").count
    }

    /// `true`: everything is here. `false`: stopped, or something went wrong; what came is kept.
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
