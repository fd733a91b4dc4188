import Foundation
import Glibc
import ProcessSupport

/// The service manager that started this process. The type reads the data that the manager passes, and sends reports to the
/// manager.
///
/// The protocol is stable, and is described in sd_listen_fds(3) and sd_notify(3).
package enum ServiceManager {
    /// The socket for the apps' change notifications. `nil` if the manager passed no socket. If a change notification arrives
    /// after the agent's exit, the manager starts the agent again.
    package static let bell: Int32? = passedSocket(ProcessInfo.processInfo.environment, isSocket: isDatagramSocket)

    private static let first: Int32 = 3

    /// - Parameter isSocket: checks whether a descriptor is a socket. The check is necessary, because the variables may be old
    ///   and the descriptor may already be closed.
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

    /// Reads the change notifications that have arrived. If change notifications stayed in the socket, the manager would start
    /// the agent again as soon as the agent exits.
    ///
    /// The number of reads is limited, so that an app that sends change notifications endlessly does not stop the agent's work.
    static func drain(_ descriptor: Int32) {
        var byte: UInt8 = 0
        var left = 1_000
        while left > 0, recv(descriptor, &byte, 1, Int32(MSG_DONTWAIT)) >= 0 { left -= 1 }
    }

    /// Passes the socket to the program that will replace this program by `exec`.
    package static func passOn() { if let bell { _ = fcntl(bell, F_SETFD, 0) } }

    /// Reports that the start is complete. A manager that waits for this report kills the process if the report does not arrive
    /// in time.
    ///
    /// - Parameter status: a single line that the manager shows to the user.
    static func reportReady(_ status: String) { send("READY=1\nSTATUS=\(status.replacing("\n", with: " "))\n") }

    /// Reports that this process is about to exit. After this report, the manager delays a start of the service until the process
    /// has exited. Without this report, a start has no effect while the process runs, and an elapsed timer would be lost.
    static func reportStopping() { send("STOPPING=1\n") }

    private static func send(_ words: String) {
        guard let path = ProcessInfo.processInfo.environment["NOTIFY_SOCKET"],
            let socket = LocalSocket.connect(to: path, sendsDatagrams: true)
        else { return }
        _ = socket.write(Array(words.utf8))
    }

    /// The variables that only this process can use.
    static let variables = ["NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"]
}
