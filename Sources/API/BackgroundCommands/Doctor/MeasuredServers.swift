import BackgroundNotices
import Foundation

/// The results of tests with real notification servers. The command `make notification-servers` runs the tests and records the
/// results.
struct MeasuredServers: Decodable {
    struct Server: Decodable {
        let server: String
        let version: String
        /// The result for each feature: "yes", or "no: why".
        let features: [String: String]
    }

    let measured: String
    let servers: [Server]

    /// The results of the measurements of servers. The results are compiled into the program.
    static let all = try? JSONDecoder().decode(MeasuredServers.self, from: Data(PackageResources.measured_servers_json))

    /// Returns the text about a server, or `nil` if no test was made with this server.
    func words(of report: NotificationServerReport) -> String? {
        let named = servers.filter { $0.server == report.name }
        // The notification servers of two desktops have the name "Notification Daemon", so a test result for the same version is
        // preferred.
        guard let server = named.first(where: { $0.version == report.version }) ?? named.first else { return nil }
        let missing = server.features.filter { $0.value.hasPrefix("no: ") }.sorted { $0.key < $1.key }
        let count = server.features.count
        let which = server.version == report.version ? "" : " with \(server.version)"
        let all =
            "In the test of \(measured)\(which), \(count - missing.count) of \(count) features of this notification server worked"
        guard !missing.isEmpty else { return all + "." }
        return all + ". These features did not work: "
            + missing.map { "\($0.key) (\($0.value.dropFirst("no: ".count)))" }.joined(separator: ", ") + "."
    }
}
