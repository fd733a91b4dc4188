import BackgroundRuntime
import BackgroundTasks
import Foundation
import ProcessSupport
import Synchronization

/// Shows a file chooser to the user: the chooser of the desktop's portal, or an installed program if the desktop has no portal.
enum FileChooser {
    enum Choice: Sendable, Equatable {
        /// The paths of the chosen files.
        case chosen([String])
        case cancelled
        /// The user did not choose a file in time.
        case tooLate
        /// No chooser is installed, or no chooser could be opened.
        case unavailable
        /// The chosen files are unknown, because a path may contain the line feed that also separates the paths in the output.
        case ambiguous
        /// A chosen file is not on this computer. The value is the address of the file.
        case remote(String)
        /// The name of a chosen file is not UTF-8. The value is the path, in which U+FFFD replaces the invalid bytes. The path may
        /// therefore be the path of another file.
        case notUTF8(String)
    }

    private struct Chooser {
        let path: String
        let arguments: [String]
        /// The character that ends each path in the output.
        var separator: Character = "\n"
    }

    private static let title = "Add a photo of the storm"

    /// The installed programs that can show a file chooser, in the order in which they are tried.
    private static var choosers: [Chooser] {
        var found: [Chooser] = []
        if case .success(let path) = CompanionProgram.find("file-chooser") {
            found.append(Chooser(path: path, arguments: [title], separator: "\0"))
        }
        if let path = CompanionProgram.findInPath("zenity") {
            // Every separator that zenity accepts can also occur in a path.
            let arguments = ["--file-selection", "--multiple", "--separator=\n", "--title=\(title)"]
            found.append(Chooser(path: path, arguments: arguments))
        }
        if let path = CompanionProgram.findInPath("kdialog") {
            let arguments = ["--getopenfilename", ":photo", "image/*", "--multiple", "--separate-output", "--title", title]
            found.append(Chooser(path: path, arguments: arguments))
        }
        return found
    }

    /// The number of seconds after which a chooser is closed if the user has not chosen a file. The limit is less than the ten
    /// minutes of the launch that waits for a choice.
    private static let patience = 9.0 * 60

    /// - Parameter onOpen: A closure that receives the process of each chooser that is opened.
    static func choosePhotos(onOpen: @escaping @Sendable (ProcessIdentity) -> Void) async -> Choice {
        // The time limit of the launch does not run while the user chooses.
        BGTaskScheduler.shared.personIsChoosing(true)
        defer { BGTaskScheduler.shared.personIsChoosing(false) }
        for chooser in choosers {
            let choice = await OpenChooser(chooser.path, chooser.arguments, onOpen).choice { ended in
                judge(ended, of: chooser)
            }
            if choice != .unavailable { return choice }
        }
        return .unavailable
    }

    /// All choosers exit with 1 if the user cancels. The program zenity also exits with 1 if it cannot open a display.
    private static func judge(_ ended: OpenChooser.End, of chooser: Chooser) -> Choice {
        switch ended {
        case .cancelled: return .cancelled
        case .tooLate: return .tooLate
        case .failed: return .unavailable
        case .exited(0, let output, _):
            let paths = output.split(separator: chooser.separator).map(String.init)
            if chooser.separator == "\n", containsPathOfSeveralLines(paths) { return .ambiguous }
            if let path = paths.first(where: { $0.unicodeScalars.contains("\u{FFFD}") }) { return .notUTF8(path) }
            if let address = paths.first(where: { !$0.hasPrefix("/") }) { return .remote(address) }
            return paths.isEmpty ? .cancelled : .chosen(paths)
        case .exited(1, _, let errors) where !errors.contains("cannot open display"): return .cancelled
        case .exited: return .unavailable
        }
    }

    /// Returns whether several consecutive lines together are the path of an existing file. If several lines are one path, a
    /// single line may be the path of a file that the user did not choose.
    static func containsPathOfSeveralLines(_ lines: [String]) -> Bool {
        lines.indices.contains { first in
            var path = lines[first]
            return lines[(first + 1)...].prefix { path.utf8.count + $0.utf8.count < Int(PATH_MAX) }.contains { line in
                path += "\n" + line
                var information = stat()
                return lstat(path, &information) == 0
            }
        }
    }

    /// A chooser that is open on the screen. The chooser is closed if the awaiting task is cancelled.
    private final class OpenChooser: @unchecked Sendable {  // because the lock guards all values that change
        enum End {
            case exited(Int32, output: String, errors: String)
            /// The chooser could not be started, or another process ended the chooser with a signal.
            case failed
            case cancelled
            case tooLate
        }

        private let path: String
        private let arguments: [String]
        private let onOpen: @Sendable (ProcessIdentity) -> Void
        /// The process id while the chooser is open. If this process closed the chooser, the tuple also contains the reason.
        private let state = Mutex<(pid: Int32?, closedAs: End?)>((nil, nil))

        init(_ path: String, _ arguments: [String], _ onOpen: @escaping @Sendable (ProcessIdentity) -> Void) {
            (self.path, self.arguments, self.onOpen) = (path, arguments, onOpen)
        }

        func choice(_ judge: @escaping @Sendable (End) -> Choice) async -> Choice {
            let end = await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    DispatchQueue.global().async { [self] in continuation.resume(returning: run()) }
                }
            } onCancel: {
                close(as: .cancelled)
            }
            return judge(end)
        }

        private func run() -> End {
            let (output, errors) = (Pipe(), Pipe())
            var child = ChildProcess(path: path, arguments: arguments, environment: ThisProcess.environment)
            child.standardOutput = output.fileHandleForWriting.fileDescriptor
            child.standardError = errors.fileHandleForWriting.fileDescriptor
            let pid = state.withLock { state -> Int32? in
                // The awaiting task may be cancelled before the chooser is started.
                if state.closedAs != nil { return nil }
                state.pid = try? child.start()
                return state.pid
            }
            try? output.fileHandleForWriting.close()
            try? errors.fileHandleForWriting.close()
            guard let pid else { return state.withLock { $0.closedAs } ?? .failed }
            if let process = ProcessIdentity(pid: pid) { onOpen(process) }
            let timer = DispatchWorkItem { [self] in close(as: .tooLate) }
            DispatchQueue.global().asyncAfter(deadline: .now() + FileChooser.patience, execute: timer)
            defer { timer.cancel() }
            // Standard output and standard error are read at the same time, because a full pipe would block the chooser.
            let said = Mutex("")
            let reading = DispatchGroup()
            DispatchQueue.global().async(group: reading) {
                let text = ChildProcess.read(errors.fileHandleForReading.fileDescriptor, limit: 1 << 16)
                said.withLock { $0 = text }
            }
            let chosen = ChildProcess.read(output.fileHandleForReading.fileDescriptor, limit: 1 << 24)
            reading.wait()
            // The chooser's process has ended. The process is reaped under the lock, so that no signal is sent to another process
            // with the same process id.
            var end = siginfo_t()
            waitid(P_PID, id_t(pid), &end, WEXITED | WNOWAIT)
            return state.withLock { state in
                state.pid = nil
                let code = ChildProcess.wait(for: pid)
                if let end = state.closedAs { return end }
                return code < 128 ? .exited(code, output: chosen, errors: said.withLock { $0 }) : .failed
            }
        }

        private func close(as end: End) {
            state.withLock { state in
                state.closedAs = state.closedAs ?? end
                if let pid = state.pid { kill(pid, SIGTERM) }
            }
        }
    }
}
