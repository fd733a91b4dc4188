import BackgroundNotices
import Foundation

/// The measured behavior of real notification servers. The command `make notification-servers` records the measurements.
struct MeasuredServers: Decodable {
    struct Server: Decodable {
        let server: String
        let version: String
        /// The result for each feature: "yes", or "no: why".
        let features: [String: String]
    }

    let measured: String
    let servers: [Server]

    /// The measurements that are compiled into the program.
    static let all = try? JSONDecoder().decode(MeasuredServers.self, from: Data(PackageResources.measured_servers_json))

    /// Returns one sentence about a server, or `nil` if the server was not measured.
    func words(of report: NotificationServerReport) -> String? {
        let named = servers.filter { $0.server == report.name }
        // The version is also compared, because two desktops have a server with the name "Notification Daemon".
        guard let server = named.first(where: { $0.version == report.version }) ?? named.first else { return nil }
        let missing = server.features.filter { $0.value.hasPrefix("no: ") }.sorted { $0.key < $1.key }
        let count = server.features.count
        let which = server.version == report.version ? "" : " with \(server.version)"
        let all = "In the test of \(measured)\(which), \(count - missing.count) of \(count) features of this server work"
        guard !missing.isEmpty else { return all + "." }
        return all + ". These features do not work: "
            + missing.map { "\($0.key) (\($0.value.dropFirst("no: ".count)))" }.joined(separator: ", ") + "."
    }
}
