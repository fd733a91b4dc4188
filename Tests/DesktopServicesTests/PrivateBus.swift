import Foundation

/// A message bus of the test. The bus starts a service only if a service file is given.
final class PrivateBus: Sendable {
    let address: String
    private let daemon: ChildProcess
    private let folder: URL

    /// - Parameter serviceCommand: The command that the bus starts if a client requests the notification server.
    init(serviceCommand: String? = nil) throws {
        folder = try TemporaryFolder.make()
        let services = folder.appendingPathComponent("services")
        try FileManager.default.createDirectory(at: services, withIntermediateDirectories: true)
        if let serviceCommand {
            let service = "[D-BUS Service]\nName=org.freedesktop.Notifications\nExec=\(serviceCommand)\n"
            try Data(service.utf8).write(to: services.appendingPathComponent("notifications.service"))
        }
        let configuration = """
            <busconfig>
              <type>session</type>
              <listen>unix:dir=\(folder.path)</listen>
              <servicedir>\(services.path)</servicedir>
              <policy context="default">
                <allow send_destination="*" eavesdrop="true"/>
                <allow eavesdrop="true"/>
                <allow own="*"/>
              </policy>
            </busconfig>
            """
        let file = folder.appendingPathComponent("bus.conf")
        try Data(configuration.utf8).write(to: file)
        daemon = try ChildProcess("dbus-daemon", ["--config-file=\(file.path)", "--print-address=1", "--nofork"])
        address = try daemon.firstLine()
    }

    /// Freezes the bus. Clients can connect, but the bus does not respond.
    func freeze() { kill(daemon.pid, SIGSTOP) }
    func thaw() { kill(daemon.pid, SIGCONT) }

    func stop() {
        kill(daemon.pid, SIGCONT)
        daemon.stop()
        try? FileManager.default.removeItem(at: folder)
    }
}

enum TemporaryFolder {
    static func make() throws -> URL {
        let url = FileManager.default.temporaryDirectory.appendingPathComponent("desk-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        return url
    }
}
