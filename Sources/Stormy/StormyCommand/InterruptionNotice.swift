import BackgroundCommands
import BackgroundTransfer
import Dispatch
import Foundation
import Glibc

/// Ends a command that follows transfers when the user presses Ctrl-C. Before the command ends, a notice is printed: the
/// transfers continue without the command, and the user can stop the transfers with another command.
struct InterruptionNotice {
    /// The source of Ctrl-C events. `nil` if Ctrl-C was ignored before, or if a test runs the command in the process of the test.
    private let source: (any DispatchSourceSignal)?

    /// The address of `SIG_IGN`.
    private static let ignored = 1
    /// The maximum number of ids that the notice lists.
    private static let longestList = 10

    init(of transfers: [Int64]) {
        guard CapturedOutput.current == nil, unsafeBitCast(signal(SIGINT, SIG_IGN), to: Int.self) != Self.ignored else {
            self.source = nil
            return
        }
        let source = DispatchSource.makeSignalSource(signal: SIGINT, queue: DispatchQueue(label: "interrupt"))
        source.setEventHandler { @Sendable in InterruptionNotice.printAndExit(transfers) }
        source.activate()
        self.source = source
    }

    func end() {
        guard let source else { return }
        source.cancel()
        signal(SIGINT, SIG_DFL)
    }

    private static func printAndExit(_ transfers: [Int64]) {
        ProgressBar.clearLine()
        let statuses = try? BackgroundTransfers.statuses(of: transfers)
        let unfinished = statuses?.filter { !$0.state.hasEnded && $0.state != .paused }.map(\.id)
        if let sentence = sentence(unfinished ?? transfers) { Output.note(sentence) }
        // The command ends itself with SIGINT, because a shell stops its script only if the signal ended the command. The signal
        // is unblocked, because the thread of the handler may block it.
        signal(SIGINT, SIG_DFL)
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGINT)
        pthread_sigmask(SIG_UNBLOCK, &signals, nil)
        raise(SIGINT)
        _exit(128 + SIGINT)
    }

    /// Returns the notice. `nil` if no transfer continues.
    static func sentence(_ transfers: [Int64]) -> String? {
        switch transfers.count {
        case 0: nil
        case 1:
            "Transfer \(transfers[0]) continues in the background. To stop the transfer: stormy transfers cancel \(transfers[0])"
        case ...longestList:
            "\(transfers.count) transfers continue in the background. To stop the transfers: stormy transfers cancel "
                + transfers.map(String.init).joined(separator: " ")
        default:
            "\(transfers.count) transfers continue in the background. To list the transfers: stormy transfers. "
                + "To stop a transfer: stormy transfers cancel ID"
        }
    }
}
