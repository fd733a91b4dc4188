import BackgroundScenes
import Foundation

/// A list of items that is stored on a server (`REALM_SERVER`) and in a local file.
struct TodoItems: Codable, Sendable {
    /// Determines whether the items are downloaded before the local file is opened.
    enum OpenBehavior: Sendable {
        /// The local file is opened without a download.
        case never
        /// The items are downloaded if the local file does not exist.
        case once
        /// The items are downloaded every time. If the download fails, opening fails.
        case always
    }

    static var isUserLoggedIn: Bool {
        get async { server != nil }
    }

    static func open(downloadBeforeOpen: OpenBehavior) async throws -> [String] {
        switch downloadBeforeOpen {
        case .never: break
        case .once: if !FileManager.default.fileExists(atPath: file.path) { try await download() }
        case .always: try await download()
        }
        return try JSONDecoder().decode([String].self, from: Data(contentsOf: file))
    }

    /// - Returns: the items, and a description of where the items come from.
    static func autoOpen() async throws -> ([String], String) {
        do {
            return (try await open(downloadBeforeOpen: .always), "just updated from the server")
        } catch {
            return (try await open(downloadBeforeOpen: .never), "from the last update")
        }
    }

    private static var server: URL? { ProcessInfo.processInfo.environment["REALM_SERVER"].flatMap(URL.init(string:)) }

    private static var file: URL {
        let environment = ProcessInfo.processInfo.environment
        let home = environment["XDG_DATA_HOME"] ?? (environment["HOME"] ?? "/tmp") + "/.local/share"
        return URL(fileURLWithPath: home).appendingPathComponent("realm-example/items.json")
    }

    /// Replaces the file atomically, so that an incomplete download is never stored.
    private static func download() async throws {
        guard let server else { throw URLError(.userAuthenticationRequired) }
        let (data, response) = try await URLSession.shared.data(for: URLRequest(url: server.appendingPathComponent("items")))
        guard (response as? HTTPURLResponse)?.statusCode == 200 else { throw URLError(.badServerResponse) }
        _ = try JSONDecoder().decode([String].self, from: data)
        try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try data.write(to: file, options: .atomic)
    }
}
