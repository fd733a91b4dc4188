import BackgroundRuntime
import BackgroundTasks
import Foundation

/// Lets a person choose photos: with the desktop's own chooser (the portal's), else with one that is installed.
enum FileChooser {
    enum Choice: Sendable, Equatable {
        case chosen([URL])
        case cancelled
        case unavailable
    }

    private struct Chooser {
        let path: String
        let arguments: [String]
        /// Ends each path.
        var separator: Character = "\n"
        /// Its exit code for "there is none", where it has one.
        var noneStatus: Int32?
    }

    private static let title = "Add a photo of the storm"

    /// In the order in which they are tried.
    private static var choosers: [Chooser] {
        var found: [Chooser] = []
        if case .success(let path) = CompanionProgram.find("file-chooser") {
            found.append(Chooser(path: path, arguments: [title], separator: "\0", noneStatus: 2))
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

    static func choosePhotos() async -> Choice {
        // The person's time is not the launch's budget.
        BGTaskScheduler.shared.personIsChoosing(true)
        defer { BGTaskScheduler.shared.personIsChoosing(false) }
        for chooser in choosers {
            let choice = await run(chooser)
            if choice != .unavailable { return choice }
        }
        return .unavailable
    }

    private static func run(_ chooser: Chooser) async -> Choice {
        await withCheckedContinuation { continuation in
            let process = Process()
            let output = Pipe()
            process.executableURL = URL(fileURLWithPath: chooser.path)
            process.arguments = chooser.arguments
            process.standardOutput = output
            process.standardError = FileHandle.nullDevice
            do { try process.run() } catch { return continuation.resume(returning: .unavailable) }
            // Reads to the end first: a long list must not fill the pipe.
            DispatchQueue.global().async {
                let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
                process.waitUntilExit()
                let files = text.split(separator: chooser.separator).map { URL(fileURLWithPath: String($0)) }
                switch process.terminationStatus {
                case 0 where !files.isEmpty: continuation.resume(returning: .chosen(files))
                case chooser.noneStatus: continuation.resume(returning: .unavailable)
                default: continuation.resume(returning: .cancelled)
                }
            }
        }
    }
}
