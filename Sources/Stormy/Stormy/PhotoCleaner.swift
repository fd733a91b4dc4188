import BackgroundRuntime
import Foundation
import ProcessSupport
import Synchronization

/// Removes the location from photos with the separate program `photo-cleaner`, so that a parser error on a damaged file cannot
/// crash the app. The program continues to run for the next photo, and ends when this process ends. The program can read only one
/// folder, which contains only the photo.
final class PhotoCleaner: Sendable {
    enum Verdict: Sendable, Equatable {
        /// The program proved that the file has no location. The value contains the names of the overwritten blocks.
        case clean([String])
        /// The file cannot be opened, or its format is unknown. The file is unchanged.
        case unreadable(String)
        /// The file has a location that could not be removed, or the program could not be started.
        case notCleaned(String)
        /// The program ended, or was killed, before it sent a response. The file may be cleaned in part.
        case interrupted
    }

    /// The running programs that wait for a photo.
    private let idle = Mutex<[Helper]>([])
    private let program: String?
    private let send: Sending

    /// A function that sends bytes through a socket. The function is the system call, or a test double that fails.
    typealias Sending = @Sendable (_ socket: Int32, UnsafeRawBufferPointer) -> Int

    /// - Parameter program: the path of `photo-cleaner`. `nil` if the program is not installed.
    init(
        program: String? = PhotoCleaner.installed,
        send: @escaping Sending = { Glibc.send($0, $1.baseAddress, $1.count, Int32(MSG_NOSIGNAL)) }
    ) {
        (self.program, self.send) = (program, send)
    }

    /// Cleans the file in place. The call blocks until the program has responded. Each calling thread uses a separate process of
    /// the program.
    ///
    /// - Throws: ``PhotoUploadError/cannotRead(path:reason:)`` if the system failed, for example the disk. The file can be
    ///   cleaned later.
    func clean(_ file: URL) throws(PhotoUploadError) -> Verdict {
        guard let program else { return .notCleaned("the program photo-cleaner is not installed") }
        var helper = if let known = idle.withLock({ $0.popLast() }) { known } else { try start(program, beside: file) }
        var response = try helper.clean(file)
        if case .requestFailed = response {
            // The program may have been killed while it was idle. If the program was killed, the file is unchanged, and a new
            // process of the program cleans the file.
            helper.kill()
            helper = try start(program, beside: file)
            response = try helper.clean(file)
        }
        switch response {
        case .verdict(let verdict):
            idle.withLock { $0.append(helper) }
            return verdict
        case .ended:
            // After any failure the process is killed, and a new process cleans the next photo.
            helper.kill()
            if Self.hasRoom(for: file) { return .interrupted }
            throw Self.noRoom(for: file)
        case .requestFailed(let number):
            helper.kill()
            let reason = String(cString: strerror(number))
            throw .cannotRead(path: file.path, reason: "the file could not be checked: \(reason). Run the command again")
        }
    }

    private func start(_ program: String, beside file: URL) throws(PhotoUploadError) -> Helper {
        if let helper = Helper(program, beside: file, send: send) { return helper }
        throw Self.hasRoom(for: file)
            ? .cannotRead(path: file.path, reason: "photo-cleaner cannot be started") : Self.noRoom(for: file)
    }

    private static func hasRoom(for file: URL) -> Bool {
        !DiskSpace.hasNoFreeInodes(at: file.path) && DiskSpace.left(at: file.path) != 0
    }

    private static func noRoom(for file: URL) -> PhotoUploadError {
        .cannotRead(path: file.path, reason: "no space is left in \(file.deletingLastPathComponent().path)")
    }

    static let installed = try? CompanionProgram.find("photo-cleaner").get()

    /// The result of a request to clean one file.
    private enum Response {
        case verdict(Verdict)
        /// The program ended, or was killed, before it sent a valid response. The file is unchanged, or cleaned in part.
        case ended
        /// The path could not be sent to the program. The value is the error number. The file is unchanged.
        case requestFailed(Int32)
    }

    /// A running process of `photo-cleaner`.
    private final class Helper: @unchecked Sendable {  // because only one thread uses an instance after taking it from `idle`
        private let pid: Int32
        /// The socket through which requests are sent and responses are received. A pipe is not used, because writing to the pipe
        /// of a program that has ended would raise SIGPIPE.
        private let socket: Int32
        private let send: Sending
        private var rest: [UInt8] = []
        private let folder: HeldFolder
        /// The folders of this process, which are removed at exit.
        private static let folders: Mutex<Set<String>> = {
            ProcessExit.onExit { for folder in Helper.folders.withLock({ $0 }) { HeldFolder.remove(folder) } }
            return Mutex([])
        }()

        /// - Parameter file: The file to clean. The helper's folder is created in the folder of this file, because a hard link
        ///   must be on the same file system. The spool may be on another file system than its parent folder.
        init?(_ program: String, beside file: URL, send: @escaping Sending) {
            let place = file.deletingLastPathComponent()
            HeldFolder.removeAbandoned(prefix: HeldFolder.cleaning, in: place)
            guard let folder = HeldFolder(prefix: HeldFolder.cleaning, in: place) else { return nil }
            (self.folder, self.send) = (folder, send)
            _ = Self.folders.withLock { $0.insert(folder.url.path) }
            var ends: [Int32] = [-1, -1]
            let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
            guard socketpair(AF_UNIX, kind, 0, &ends) == 0 else { return nil }
            let socket = ends[0]
            let nothing = open("/dev/null", O_WRONLY | O_CLOEXEC)
            defer { close(nothing) }
            defer { close(ends[1]) }
            var child = ChildProcess(
                path: program, arguments: [folder.url.path], environment: ThisProcess.environment)
            (child.standardInput, child.standardOutput, child.standardError) = (ends[1], ends[1], nothing)
            guard let pid = try? child.start() else {
                close(socket)
                return nil
            }
            self.socket = socket
            self.pid = pid
        }

        deinit {
            close(socket)
            _ = ChildProcess.wait(for: pid)
            _ = Self.folders.withLock { $0.remove(folder.url.path) }
        }

        /// Cleans the file in place.
        func clean(_ file: URL) throws(PhotoUploadError) -> Response {
            let name = folder.url.appendingPathComponent("photo", isDirectory: false)
            defer { unlink(name.path) }
            // Some file systems do not support hard links.
            if link(file.path, name.path) != 0, (try? FileManager.default.copyItem(at: file, to: name)) == nil {
                throw PhotoCleaner.hasRoom(for: file)
                    ? .cannotRead(path: file.path, reason: "the copy of the photo cannot be stored in \(folder.url.path)")
                    : PhotoCleaner.noRoom(for: file)
            }
            let response = try request(about: name)
            guard case .verdict = response else { return response }
            // A compromised program may have replaced the file, for example with a link to another user's file.
            var information = stat()
            guard lstat(name.path, &information) == 0, information.st_mode & S_IFMT == S_IFREG else { return .ended }
            // The program changed the file in place, or replaced the file. In both cases, the file that the program cleaned
            // replaces the copy.
            guard rename(name.path, file.path) == 0 else {
                let number = errno
                throw .cannotRead(path: file.path, reason: String(cString: strerror(number)))
            }
            return response
        }

        func kill() { Glibc.kill(pid, SIGKILL) }

        /// The seconds of processor time that the program used since its start.
        private var processorTime: Double {
            var (clock, time) = (clockid_t(), timespec())
            guard clock_getcpuclockid(pid, &clock) == 0, clock_gettime(clock, &time) == 0 else { return 0 }
            return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
        }

        /// Waits until the program writes or ends.
        ///
        /// - Returns: `false` if the program took too long.
        private func hasAnswer(within patience: inout CleanerTimeLimit, _ file: URL) throws(PhotoUploadError) -> Bool {
            var waiting = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
            while true {
                switch poll(&waiting, 1, 1_000) {
                case 1...: return true
                case 0: if patience.isOver(used: processorTime) { return false }
                default: if errno != EINTR { throw Self.noAnswer(about: file) }
                }
            }
        }

        /// Returns the error if this process cannot receive the program's response. The photo did not cause this error.
        private static func noAnswer(about file: URL) -> PhotoUploadError {
            .cannotRead(path: file.path, reason: "photo-cleaner sent no response: \(String(cString: strerror(errno)))")
        }

        private func request(about file: URL) throws(PhotoUploadError) -> Response {
            let path = file.path.utf8CString
            guard path.withUnsafeBytes({ send(socket, $0) }) == path.count else { return .requestFailed(errno) }
            var information = stat()
            let size = lstat(file.path, &information) == 0 ? Int64(information.st_size) : 0
            var patience = CleanerTimeLimit(forBytes: size, used: processorTime)
            var buffer = [UInt8](repeating: 0, count: 1 << 14)
            // An empty field ends the response.
            while !rest.suffix(2).elementsEqual([0, 0]) {
                guard try hasAnswer(within: &patience, file) else { return .ended }
                let count = recv(socket, &buffer, buffer.count, 0)
                // ECONNRESET is not an error of this process. If the program was killed before it read the path, the connection
                // is reset.
                if count < 0, errno != ECONNRESET { throw Self.noAnswer(about: file) }
                guard count > 0, rest.count < 1 << 20 else { return .ended }
                rest += buffer[..<count]
            }
            defer { rest = [] }
            let fields = rest.dropLast(2).split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
            switch fields.first {
            case "clean": return .verdict(.clean(Array(fields.dropFirst())))
            case "unreadable" where fields.count == 2: return .verdict(.unreadable(fields[1]))
            case "failed" where fields.count == 2: return .verdict(.notCleaned(fields[1]))
            case "fault" where fields.count == 2: throw .cannotRead(path: file.path, reason: fields[1])
            default: return .ended
            }
        }
    }
}
