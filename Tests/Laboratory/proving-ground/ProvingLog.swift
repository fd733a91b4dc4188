import Foundation

/// Appends complete lines to the file that `PROVING_LOG` names. When `write` returns, the line is on the disk.
final class ProvingLog: Sendable {
    private let descriptor: Int32

    init() {
        let path = ProcessInfo.processInfo.environment["PROVING_LOG"] ?? "/dev/null"
        descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    }

    func write(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        _ = Foundation.write(descriptor, bytes, bytes.count)
        fsync(descriptor)
    }
}
