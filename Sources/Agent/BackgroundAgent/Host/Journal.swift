import Foundation
import ProcessSupport

/// The journal of systemd, if standard error of this process is connected to the journal. `journalctl` can search for the fields
/// of an entry.
///
/// The protocol is described at <https://systemd.io/JOURNAL_NATIVE_PROTOCOL/>.
final class Journal: Sendable {
    private let socket: LocalSocket

    /// The journal to which standard error is connected. `nil` if standard error is not connected to a journal, or if the journal
    /// does not run.
    static let ofThisProcess = Journal(
        stream: ProcessInfo.processInfo.environment["JOURNAL_STREAM"], standardError: 2, socket: "/run/systemd/journal/socket")

    /// - Parameters:
    ///   - stream: the device and the inode of the journal's stream, in the format that systemd uses.
    ///   - standardError: the descriptor that is compared with the stream, because the user may have redirected standard error.
    init?(stream: String?, standardError: Int32, socket path: String) {
        var information = stat()
        guard let stream, fstat(standardError, &information) == 0, stream == "\(information.st_dev):\(information.st_ino)",
            let socket = LocalSocket.connect(to: path, sendsDatagrams: true)
        else { return nil }
        self.socket = socket
    }

    /// Sends an entry. Returns `false` if the journal did not accept the entry. The journal may be busy, or may have ended.
    func send(_ entry: LogEntry, app: String) -> Bool { socket.write(Self.encoded(entry, app: app)) }

    static func encoded(_ entry: LogEntry, app: String) -> [UInt8] {
        var bytes: [UInt8] = []
        func add(_ name: String, _ value: String) {
            // A value without a line feed has the short form `name=value`. A line feed would end the short form.
            guard value.contains("\n") else { return bytes += Array("\(name)=\(value)\n".utf8) }
            bytes += Array("\(name)\n".utf8)
            withUnsafeBytes(of: UInt64(value.utf8.count).littleEndian) { bytes += Array($0) }
            bytes += Array("\(value)\n".utf8)
        }
        add("MESSAGE", entry.message.text)
        add("PRIORITY", "\(entry.message.priority)")
        add("SYSLOG_IDENTIFIER", "background-agent")
        add("BACKGROUND_EVENT", entry.message.rawValue)
        add("BACKGROUND_APP", app)
        for (field, value) in entry.values { add("BACKGROUND_" + field.rawValue.uppercased(), value) }
        return bytes
    }
}
