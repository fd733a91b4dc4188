import Foundation
import ProcessSupport

/// The journal of systemd, where this process's standard error leads there. An entry has fields, by which `journalctl` finds it.
///
/// Source: <https://systemd.io/JOURNAL_NATIVE_PROTOCOL/>.
final class Journal: Sendable {
    private let socket: LocalSocket

    /// The one that standard error leads to; `nil`: it leads elsewhere, or nobody listens.
    static let ofThisProcess = Journal(
        stream: ProcessInfo.processInfo.environment["JOURNAL_STREAM"], standardError: 2, socket: "/run/systemd/journal/socket")

    /// - Parameters:
    ///   - stream: device and inode of what leads to the journal, as systemd says them.
    ///   - standardError: is compared with it: a person may have redirected it.
    init?(stream: String?, standardError: Int32, socket path: String) {
        var information = stat()
        guard let stream, fstat(standardError, &information) == 0, stream == "\(information.st_dev):\(information.st_ino)",
            let socket = LocalSocket.connect(to: path, sendsDatagrams: true)
        else { return nil }
        self.socket = socket
    }

    /// `false`: it was not taken, as the journal is busy or gone.
    func send(_ entry: LogEntry, app: String) -> Bool { socket.write(Self.encoded(entry, app: app)) }

    static func encoded(_ entry: LogEntry, app: String) -> [UInt8] {
        var bytes: [UInt8] = []
        func add(_ name: String, _ value: String) {
            // The short form ends at the line's end.
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
