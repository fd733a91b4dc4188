import BackgroundRuntime
import BackgroundTasks
import Foundation
import Synchronization

/// Lets a person choose photos: with the desktop's own chooser (the portal's), else with one that is installed.
enum FileChooser {
    enum Choice: Sendable, Equatable {
        case chosen([URL])
        case cancelled
        /// Nobody answered.
        case tooLate
        /// There is none, or none could be opened.
        case unavailable
    }

    private struct Chooser {
        let path: String
        let arguments: [String]
        /// Ends each path.
        var separator: Character = "\n"
    }

    private static let title = "Add a photo of the storm"

    /// In the order in which they are tried.
    private static var choosers: [Chooser] {
        var found: [Chooser] = []
        if case .success(let path) = CompanionProgram.find("file-chooser") {
            found.append(Chooser(path: path, arguments: [title], separator: "\0"))
        }
        if let path = CompanionProgram.findInPath("zenity") {
            // A path has no line end in practice, and zenity offers nothing that no path can have.
            let arguments = ["--file-selection", "--multiple", "--separator=\n", "--title=\(title)"]
            found.append(Chooser(path: path, arguments: arguments))
        }
        if let path = CompanionProgram.findInPath("kdialog") {
            let arguments = ["--getopenfilename", ":photo", "image/*", "--multiple", "--separate-output", "--title", title]
            found.append(Chooser(path: path, arguments: arguments))
        }
        return found
    }

    /// Seconds after which a chooser that nobody answers is closed: before the launch ends, which gives a choice ten minutes.
    private static let patience = 9.0 * 60

    static func choosePhotos() async -> Choice {
        // The person's time is not the launch's budget.
        BGTaskScheduler.shared.personIsChoosing(true)
        defer { BGTaskScheduler.shared.personIsChoosing(false) }
        for chooser in choosers {
            let choice = await OpenChooser(chooser.path, chooser.arguments).choice { ended in
                judge(ended, of: chooser)
            }
            if choice != .unavailable { return choice }
        }
        return .unavailable
    }

    /// 1 is "nothing chosen" to all of them; zenity says so as well where it has no screen.
    private static func judge(_ ended: OpenChooser.End, of chooser: Chooser) -> Choice {
        switch ended {
        case .cancelled: return .cancelled
        case .tooLate: return .tooLate
        case .failed: return .unavailable
        case .exited(0, let output, _):
            let files = output.split(separator: chooser.separator).map { URL(fileURLWithPath: String($0)) }
            return files.isEmpty ? .cancelled : .chosen(files)
        case .exited(1, _, let errors) where !errors.contains("cannot open display"): return .cancelled
        case .exited: return .unavailable
        }
    }

    /// A chooser on the screen. It goes with who asked.
    private final class OpenChooser: @unchecked Sendable {  // because the lock guards what changes
        enum End {
            case exited(Int32, output: String, errors: String)
            /// It cannot be started, or a signal that was not ours ended it.
            case failed
            case cancelled
            case tooLate
        }

        private let process = Process()
        private let (output, errors) = (Pipe(), Pipe())
        private let closedAs = Mutex<End?>(nil)

        init(_ path: String, _ arguments: [String]) {
            process.executableURL = URL(fileURLWithPath: path)
            process.arguments = arguments
            process.standardOutput = output
            process.standardError = errors
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
            do {
                // Closed before it was opened.
                if let end = closedAs.withLock({ $0 }) { return end }
                try process.run()
            } catch {
                return .failed
            }
            if closedAs.withLock({ $0 }) != nil { process.terminate() }
            let timer = DispatchWorkItem { [self] in close(as: .tooLate) }
            DispatchQueue.global().asyncAfter(deadline: .now() + FileChooser.patience, execute: timer)
            defer { timer.cancel() }
            // Both to the end, side by side: neither may be full.
            let said = Mutex(Data())
            let reading = DispatchGroup()
            DispatchQueue.global().async(group: reading) { [errors] in
                let data = errors.fileHandleForReading.readDataToEndOfFile()
                said.withLock { $0 = data }
            }
            let chosen = output.fileHandleForReading.readDataToEndOfFile()
            process.waitUntilExit()
            reading.wait()
            if let end = closedAs.withLock({ $0 }) { return end }
            guard process.terminationReason == .exit else { return .failed }
            return .exited(
                process.terminationStatus, output: String(decoding: chosen, as: UTF8.self),
                errors: String(decoding: said.withLock { $0 }, as: UTF8.self))
        }

        private func close(as end: End) {
            closedAs.withLock { $0 = $0 ?? end }
            if process.isRunning { process.terminate() }
        }
    }
}
