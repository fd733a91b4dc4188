import Foundation
import Synchronization

/// Has photos cleaned of their location by `photo-cleaner`, a program of its own: a parser of strangers' files must not take
/// an app down with it. One program for all photos of this process; it ends with the process.
final class PhotoCleaner: Sendable {
    enum Verdict: Sendable, Equatable {
        /// The file is clean now; what was removed from it.
        case clean([String])
        /// What reads metadata cannot read it.
        case unreadable(String)
        /// It was looked at and could not be cleaned; or nobody could look.
        case notCleaned(String)
    }

    private struct Helper {
        let process: Process
        /// Both ways: a pipe to a program that died would raise SIGPIPE.
        let socket: Int32
        var rest: [UInt8] = []
    }

    private struct Answer: Decodable {
        let removed: [String]
        let trouble: String?
        let isUnreadable: Bool?
    }

    /// Milliseconds for one photo.
    private static let patience: Int32 = 20_000

    private let helper = Mutex<UncheckedBox?>(nil)

    private final class UncheckedBox: @unchecked Sendable {  // because it is only touched under the lock
        var helper: Helper

        init(_ helper: Helper) { self.helper = helper }

        deinit {
            close(helper.socket)
            helper.process.waitUntilExit()
        }
    }

    /// Cleans the file in place. Blocks for as long as it takes.
    func clean(_ file: URL) -> Verdict {
        helper.withLock { box in
            guard let program = Self.program else { return .notCleaned("the program photo-cleaner is not installed") }
            if box == nil { box = Self.start(program).map(UncheckedBox.init) }
            guard let running = box else { return .notCleaned("photo-cleaner cannot be started") }
            guard let answer = Self.ask(&running.helper, file) else {
                // Whatever it was about this file: the next one gets a fresh program.
                kill(running.helper.process.processIdentifier, SIGKILL)
                box = nil
                return .notCleaned("its metadata cannot be read (the reader ended over it)")
            }
            guard let trouble = answer.trouble else { return .clean(answer.removed) }
            return answer.isUnreadable == true ? .unreadable(trouble) : .notCleaned(trouble)
        }
    }

    /// Beside this program, in `../libexec`, then in `PATH`.
    private static let program: String? = {
        let folder = URL(fileURLWithPath: (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? "")
            .deletingLastPathComponent()
        var places = [folder, folder.deletingLastPathComponent().appendingPathComponent("libexec")].map(\.path)
        places += (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map(String.init)
        return places.map { $0 + "/photo-cleaner" }.first { FileManager.default.isExecutableFile(atPath: $0) }
    }()

    private static func start(_ program: String) -> Helper? {
        var ends: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else { return nil }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        let theirs = FileHandle(fileDescriptor: ends[1], closeOnDealloc: true)
        process.standardInput = theirs
        process.standardOutput = theirs
        process.standardError = FileHandle.nullDevice
        do {
            try process.run()
        } catch {
            close(ends[0])
            return nil
        }
        return Helper(process: process, socket: ends[0])
    }

    /// `nil`: it did not answer.
    private static func ask(_ helper: inout Helper, _ file: URL) -> Answer? {
        guard var line = try? JSONEncoder().encode(file.path) else { return nil }
        line.append(0x0A)
        guard line.withUnsafeBytes({ send(helper.socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }) == line.count
        else { return nil }
        var buffer = [UInt8](repeating: 0, count: 1 << 14)
        while !helper.rest.contains(0x0A) {
            var waiting = pollfd(fd: helper.socket, events: Int16(POLLIN), revents: 0)
            guard poll(&waiting, 1, patience) > 0 else { return nil }
            let count = recv(helper.socket, &buffer, buffer.count, 0)
            guard count > 0, helper.rest.count < 1 << 20 else { return nil }
            helper.rest += buffer[..<count]
        }
        let end = helper.rest.firstIndex(of: 0x0A)!
        defer { helper.rest.removeSubrange(...end) }
        return try? JSONDecoder().decode(Answer.self, from: Data(helper.rest[..<end]))
    }
}
