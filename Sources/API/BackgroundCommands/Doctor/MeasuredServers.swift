import BackgroundNotices
import Foundation

/// What was measured of notifications on real servers, by `make notification-servers`.
struct MeasuredServers: Decodable {
    struct Server: Decodable {
        let server: String
        let version: String
        /// "yes", or "no: why".
        let features: [String: String]
    }

    let measured: String
    let servers: [Server]

    /// Read from the program itself.
    static let all = try? JSONDecoder().decode(MeasuredServers.self, from: Data(PackageResources.measured_servers_json))

    /// One sentence of a server; `nil`: it was not measured.
    func words(of report: NotificationServerReport) -> String? {
        let named = servers.filter { $0.server == report.name }
        // Two desktops call theirs "Notification Daemon".
        guard let server = named.first(where: { $0.version == report.version }) ?? named.first else { return nil }
        let missing = server.features.filter { $0.value.hasPrefix("no: ") }.sorted { $0.key < $1.key }
        let count = server.features.count
        let which = server.version == report.version ? "" : " with \(server.version)"
        let all = "Measured on \(measured)\(which): \(count - missing.count) of \(count) features"
        guard !missing.isEmpty else { return all + "." }
        return all + "; not: " + missing.map { "\($0.key) (\($0.value.dropFirst("no: ".count)))" }.joined(separator: ", ") + "."
    }
}
