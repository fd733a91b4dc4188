import Foundation
import Glibc
import ProcessSupport

/// The service manager that started this process: what it passes, and what it is told.
///
/// Source: sd_listen_fds(3) and sd_notify(3), which describe both as a stable protocol.
package enum ServiceManager {
    /// The socket that apps ring, where the manager passed one. It starts the agent again when it rings later.
    package static let bell: Int32? = passedSocket(ProcessInfo.processInfo.environment, isSocket: isDatagramSocket)

    private static let first: Int32 = 3

    /// - Parameter isSocket: the variables may be left over from a process whose descriptors are closed.
    static func passedSocket(_ environment: [String: String], isSocket: (Int32) -> Bool) -> Int32? {
        guard environment["LISTEN_PID"] == "\(getpid())", environment["LISTEN_FDS"].flatMap({ Int($0) }) ?? 0 > 0, isSocket(first)
        else { return nil }
        _ = fcntl(first, F_SETFD, FD_CLOEXEC)
        return first
    }

    private static func isDatagramSocket(_ descriptor: Int32) -> Bool {
        var kind: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &kind, &size) == 0 && kind == Int32(SOCK_DGRAM.rawValue)
    }

    /// Takes the rings so far: what is left in the socket starts the agent again as soon as it leaves.
    ///
    /// Not all of somebody who rings without end: they do not keep the agent from its work.
    static func drain(_ descriptor: Int32) {
        var byte: UInt8 = 0
        var left = 1_000
        while left > 0, recv(descriptor, &byte, 1, Int32(MSG_DONTWAIT)) >= 0 { left -= 1 }
    }

    /// The program that this process becomes by `exec` finds the socket, too.
    package static func passOn() { if let bell { _ = fcntl(bell, F_SETFD, 0) } }

    /// The start has come to its end. Without this a manager that waits for it gives up after a while, and kills.
    ///
    /// - Parameter status: one line for a person who asks the manager.
    static func tellReady(_ status: String) { tell("READY=1\nSTATUS=\(status.replacing("\n", with: " "))\n") }

    /// This process ends by itself. From now on what would start the service waits until it has ended; a start beside one that runs is
    /// none, and a timer that elapsed for it would have elapsed for nothing.
    static func tellStopping() { tell("STOPPING=1\n") }

    private static func tell(_ words: String) {
        guard let path = ProcessInfo.processInfo.environment["NOTIFY_SOCKET"],
            let socket = LocalSocket.connect(to: path, sendsDatagrams: true)
        else { return }
        _ = socket.write(Array(words.utf8))
    }

    /// What is meant for this process alone.
    static let variables = ["NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"]
}
