/// A report about the notification server of a desktop. A helper program makes the report and passes it to another process as
/// JSON.
package struct NotificationServerReport: Codable, Sendable, Equatable {
    /// The reason why no server shows notifications.
    package enum Trouble: String, Codable, Sendable {
        case noBus
        case noServer
        case refused
        /// A server is available but did not respond in time.
        case silent
    }

    package var trouble: Trouble?
    /// The system's description of the problem.
    package var detail: String
    package var name: String
    package var version: String
    /// The server's capabilities, with the names of the Desktop Notifications specification, for example "actions".
    package var capabilities: [String]
    /// The process id of the server. `nil` if the bus does not report the process id.
    package var pid: Int32?

    package init(
        trouble: Trouble? = nil, detail: String = "", name: String = "", version: String = "", capabilities: [String] = [],
        pid: Int32? = nil
    ) {
        (self.trouble, self.detail, self.name, self.version) = (trouble, detail, name, version)
        (self.capabilities, self.pid) = (capabilities, pid)
    }

    /// The name and the version of the server, as a single text.
    package var label: String { Self.label(name, version) }

    package static func label(_ name: String, _ version: String) -> String { "\(name) \(version)" }

    /// Creates the report for a failed request to the server.
    package init(_ failure: PresenterFailure, pid: Int32?) {
        switch failure {
        case .noSessionBus(let detail), .busUnreachable(let detail): self.init(trouble: .noBus, detail: detail, pid: pid)
        case .noServer(let detail): self.init(trouble: .noServer, detail: detail, pid: pid)
        case .refused(let detail): self.init(trouble: .refused, detail: detail, pid: pid)
        case .unresponsive(let detail), .unanswered(let detail): self.init(trouble: .silent, detail: detail, pid: pid)
        }
    }
}
