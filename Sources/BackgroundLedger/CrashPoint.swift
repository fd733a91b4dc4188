import CLinux
import Foundation

/// A named point at which a test may have the process killed, as a power cut would: SIGKILL, no clean-up.
///
/// `BACKGROUND_CRASH_AT=name` kills at the first passage; `name:3` at the third; `name#12` at the first of transfer 12.
/// Debug builds only.
public enum CrashPoint {
    #if DEBUG
        private static let wanted: (name: String, passage: Int)? = {
            guard let text = ProcessInfo.processInfo.environment["BACKGROUND_CRASH_AT"] else { return nil }
            let parts = text.split(separator: ":")
            guard let name = parts.first else { return nil }
            return (name: String(name), passage: parts.count > 1 ? Int(parts[1]) ?? 1 : 1)
        }()
        private static let passages = Passages()
    #endif

    /// - Parameter transfer: of whose journey this is a point.
    public static func reach(_ name: String, _ transfer: Int64? = nil) {
        #if DEBUG
            guard let wanted, wanted.name == name || transfer.map({ wanted.name == "\(name)#\($0)" }) == true,
                passages.count() == wanted.passage
            else { return }
            kill(getpid(), SIGKILL)
        #endif
    }
}

#if DEBUG
    private final class Passages: @unchecked Sendable {  // because the lock guards the only field
        private let lock = NSLock()
        private var passed = 0

        func count() -> Int {
            lock.withLock {
                passed += 1
                return passed
            }
        }
    }
#endif
