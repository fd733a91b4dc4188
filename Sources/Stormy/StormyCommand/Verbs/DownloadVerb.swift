import ArgumentParser
import BackgroundCommands
import BackgroundTransfer
import Foundation
import ProcessSupport
import Stormy
import Synchronization

struct DownloadVerb: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "download", abstract: "Queues the download of a file and exits.",
        discussion: """
            The partial file has a hidden name in the same folder. The file gets its final name when the file is complete and
            verified. The download continues after the terminal is closed, and after failures of the network, the server or the
            agent. "stormy transfers" shows the progress.

            An existing file is replaced only if -o names it, or with --force. If another program creates a file with this name
            during the download, that file is kept, and the download gets a numbered name. A link is replaced only with --force;
            the target of the link is kept.

            Example:
              stormy download https://example.org/disk.img -o disk.img --wait
            """)

    @Argument(help: "An http or https address.") var url: String
    @Option(
        name: [.customShort("o"), .long],
        help: "The path of the downloaded file. An existing file is replaced. Default: the name in the address.")
    var output: String?
    @Flag(help: "If a file has the chosen path when the download ends, replace this file.") var force = false
    @Flag(help: "Show a progress bar, and wait until the download has ended.") var wait = false
    @Option(
        help: "The expected SHA-256, 64 hexadecimal digits. The download fails if the file has another SHA-256.")
    var sha256: String?
    @Option(help: "The maximum number of bytes per second, for example 500k or 2m.") var limitRate: String?
    @Flag(help: "Print JSON.") var json = false

    func validate() throws {
        if output?.isEmpty == true { throw ValidationError("--output expects a file name") }
        if let sha256, !URLSessionDownloadTask.isSHA256(sha256) {
            throw ValidationError("--sha256 expects 64 hexadecimal digits")
        }
        if let limitRate, Self.bytes(limitRate) == nil {
            throw ValidationError("--limit-rate expects a number of bytes, for example 500k or 2m")
        }
    }

    static func bytes(_ text: String) -> Int64? {
        let factor: Int64
        switch text.lowercased().last {
        case "k": factor = 1_000
        case "m": factor = 1_000_000
        default: factor = 1
        }
        let digits = factor == 1 ? text[...] : text.dropLast()
        guard digits.allSatisfy(\.isASCII), let number = Int64(digits), number > 0,
            !number.multipliedReportingOverflow(by: factor).overflow
        else { return nil }
        return number * factor
    }

    func run() async throws {
        try StormyTool.configure()
        guard let address = URL(string: url), let scheme = address.scheme?.lowercased(), ["http", "https"].contains(scheme),
            address.host?.isEmpty == false
        else { throw CommandFailure(.badData, "\(url) is not an http or https address") }
        if let port = address.port, !(1...65_535).contains(port) {
            throw CommandFailure(.badData, "\(url): the port is not a number from 1 to 65535")
        }
        let (file, replaces) = try place(for: address)
        let configuration = Downloads.configuration()
        configuration.maximumBytesPerSecond = limitRate.flatMap(Self.bytes)
        let task = Downloads.task(
            from: address, to: file, replacing: replaces, sha256: sha256, in: URLSession(configuration: configuration))
        // If this process waits for the download, only this process reports the result. If this process exits earlier, the agent
        // launches the app to report the result.
        let follower = DownloadFollower()
        if wait { task.delegate = follower }
        task.taskDescription = file.path
        task.resume()
        guard let number = task.transferNumber else {
            let isAlone = (task.error as? URLError)?.code == .backgroundSessionWasDisconnected
            throw CommandFailure(
                isAlone ? .unavailable : .cannotCreate, "\(file.path): \(task.error?.localizedDescription ?? "not queued")")
        }
        if !wait {
            if json { return try Output.json(BackgroundTransfers.statuses(of: [number]).map(TransferReport.init)) }
            return Output.line("Downloading to \(file.path): transfer \(number).")
        }
        if Terminal.isTerminal(STDERR_FILENO) {
            Output.note("Transfer \(number) continues in the background if you interrupt this command.")
        }
        let ended = try await follow(number)
        if json { try Output.json([TransferReport(ended)]) }
        try report(ended, file, follower)
    }

    /// - Returns: the file, and whether the finished download may replace any file there. `nil` if the download may replace only
    ///   the file that exists now.
    private func place(for address: URL) throws -> (file: URL, replaces: Bool?) {
        let chosen = output ?? Self.fileName(of: address)
        // If an argument is not UTF-8, replacement characters are in place of its invalid bytes. The argument would then be the
        // path of another file.
        let path = PathName.absolute(chosen)
        if path.unicodeScalars.contains("\u{FFFD}") {
            throw CommandFailure(.badData, "\(path): the name of the file is not UTF-8")
        }
        let file = URL(exactPath: chosen)
        guard path.utf8.first == UInt8(ascii: "/") else {
            throw CommandFailure(.notFound, "the current folder does not exist any more")
        }
        let folder = file.deletingLastPathComponent().path
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: folder, isDirectory: &isFolder), isFolder.boolValue else {
            throw CommandFailure(.notFound, "the folder \(folder) does not exist")
        }
        guard access(folder, W_OK) == 0 else { throw CommandFailure(.cannotCreate, "\(folder): not writable") }
        try OwnFiles.refuse(file.path)
        var (found, replaces) = (stat(), force as Bool?)
        if lstat(file.path, &found) == 0 {
            switch found.st_mode & S_IFMT {
            case S_IFREG: break
            case S_IFLNK:
                guard force else {
                    throw CommandFailure(
                        .cannotCreate, "\(file.path) is a link. Use --force to replace the link, or -o to name another file")
                }
            case S_IFDIR: throw CommandFailure(.cannotCreate, "\(file.path) is a folder")
            default: throw CommandFailure(.cannotCreate, "\(file.path) is not a file")
            }
            if output == nil, !force {
                throw CommandFailure(
                    .cannotCreate, "\(file.path) exists. Use --force to replace the file, or -o to name another file")
            }
            if !force { replaces = nil }
        }
        // If the ledger is unreadable, the command ends with a separate exit code. If two commands pass this check at the same
        // time, the transaction that adds the transfer accepts only one of the commands.
        if let other = try BackgroundTransfers.download(to: file) {
            throw CommandFailure(.cannotCreate, "\(file.path): transfer \(other.id) already downloads to this file")
        }
        return (file, replaces)
    }

    /// Returns the last part of the address as a safe file name. The server chooses the address. For this reason, the name must
    /// not lead to another folder, be hidden, or contain control characters.
    static func fileName(of address: URL) -> String {
        let scalars = address.lastPathComponent.unicodeScalars.map { scalar in
            scalar == "/" || scalar.value < 0x20 || (0x7F..<0xA0).contains(scalar.value) ? "_" : scalar
        }
        let name = String(String.UnicodeScalarView(scalars.drop { $0 == "." }))
        return name.isEmpty || name == "_" ? "download" : name
    }

    private func follow(_ number: Int64) async throws -> BackgroundTransferStatus {
        let interruption = InterruptionNotice(of: [number])
        defer { interruption.end() }
        let bar = ProgressBar()
        defer { bar.end() }
        let ended = try await AgentWatch.during {
            try await BackgroundTransfers.follow([number], untilReported: true) { tally in
                bar.show(done: tally.bytesDone, of: tally.bytesTotal, waiting: tally.waitingMessage)
            }
        }
        guard let status = ended.first else { throw CommandFailure(.unavailable, "transfer \(number) was removed") }
        return status
    }

    private func report(_ ended: BackgroundTransferStatus, _ file: URL, _ follower: DownloadFollower) throws {
        switch ended.state {
        case .completed:
            let place = ended.destination ?? file.path
            if let trouble = Self.absence(of: place, byteCount: ended.bytesDone) { throw CommandFailure(.cannotCreate, trouble) }
            guard !json else { return }
            if place != file.path { Output.note("\(file.path) was created during the download and is kept.") }
            let isTaken = Output.writeOutputLine("\(place): \(Output.bytes(ended.bytesDone)), SHA-256 \(ended.sha256 ?? "")")
            if !isTaken { follower.notify(place, trouble: nil, ended.taskIdentifier) }
            if let note = ended.note, note.hasPrefix("resumed") || note.hasPrefix("started over") {
                Output.note("The download \(note).")
            }
        case .paused:
            Output.note("the download is paused. To continue: stormy transfers resume \(ended.id)")
            throw ExitCode(ExitStatus.tryAgain.rawValue)
        case .cancelled:
            Output.note("\(file.path): cancelled")
            throw ExitCode(ExitStatus.unavailable.rawValue)
        case .failed, .queued, .running, .waiting:
            let trouble = ended.trouble?.message ?? "the download failed"
            if !Output.writeNote("stormy: \(file.path): \(trouble)") {
                follower.notify(file.path, trouble: trouble, ended.taskIdentifier)
            }
            let code = ended.trouble.flatMap { URLError.Code(rawValue: $0.code) }
            throw ExitCode(Self.status(code).rawValue)
        }
    }

    /// Returns the reason why a complete download is not at its path. Returns `nil` if the file is at this path.
    ///
    /// An agent of an earlier version may run in a container, and store the file under a path of the container.
    static func absence(of place: String, byteCount: Int64) -> String? {
        var found = stat()
        if stat(place, &found) == 0, found.st_mode & S_IFMT == S_IFREG, Int64(found.st_size) == byteCount { return nil }
        return
            "\(place): the download is complete, but the file is missing. "
            + "The file was moved or changed, or the agent runs in a container"
    }

    private static func status(_ code: URLError.Code?) -> ExitStatus {
        switch code {
        case .cannotDecodeContentData: .badData
        case .cannotWriteToFile: .inputOutput
        default: .unavailable
        }
    }
}

/// Receives the result of the download, so that the agent does not launch the app. The result is printed in the terminal. If the
/// terminal accepts no output, a notification shows the result.
private final class DownloadFollower: URLSessionDownloadDelegate, Sendable {
    private let isShown = Mutex(false)

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {}

    /// Waits while the terminal is stopped (Ctrl-S). After this method returns, the result of the download counts as reported.
    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        if Output.takes() || (error as? URLError)?.code == .cancelled { return }
        let file = (task as? URLSessionDownloadTask)?.destination ?? task.originalRequest?.url
        notify(file?.path ?? "The file", trouble: error?.localizedDescription, task.taskIdentifier)
    }

    /// Shows a notification. Only the first call has an effect.
    ///
    /// - Parameter trouble: `nil` if the download succeeded.
    func notify(_ path: String, trouble: String?, _ taskIdentifier: Int) {
        let isFirst = isShown.withLock { isTold in
            defer { isTold = true }
            return !isTold
        }
        guard isFirst, ActionNotification.hasDesktop else { return }
        let name = URL(exactPath: path).lastPathComponent
        Downloads.show(name, trouble: trouble, taskIdentifier: taskIdentifier) { error in
            if let error { Output.note("stormy: \(name): the notification could not be shown: \(error.localizedDescription)") }
        }
    }
}
