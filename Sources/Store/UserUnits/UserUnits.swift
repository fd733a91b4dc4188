import Foundation
import Glibc
import ProcessSupport

/// The units by which a systemd user manager brings an app's agent back after it left: the service, the socket that starts it when an app rings,
/// and the timer for the next moment at which something is due. Files of the person's own configuration.
package struct UserUnits: Sendable {
    package enum Kind: String, CaseIterable, Sendable {
        case service, socket, timer

        /// What wants it at login.
        fileprivate var target: String {
            switch self {
            case .service: "default.target"
            case .socket: "sockets.target"
            case .timer: "timers.target"
            }
        }
    }

    /// What is not as it should be with one of them.
    package struct Failure: Error, Equatable, CustomStringConvertible, Sendable {
        package let description: String

        package init(_ description: String) { self.description = description }
    }

    package let directories: AppDirectories
    private let environment: [String: String]
    private let manager: any UserManager

    /// - Parameter manager: how the user manager is asked; `nil`: by `systemctl`.
    package init(
        directories: AppDirectories, environment: [String: String] = ThisProcess.environment,
        manager: (any UserManager)? = nil
    ) {
        (self.directories, self.environment) = (directories, environment)
        self.manager = manager ?? Systemctl(environment: environment)
    }

    // MARK: Where they are

    package func name(_ kind: Kind) -> String { "background-agent-\(directories.appIdentifier).\(kind.rawValue)" }

    private var folder: URL { directories.configuration.deletingLastPathComponent().appendingPathComponent("systemd/user") }
    package func url(_ kind: Kind) -> URL { folder.appendingPathComponent(name(kind)) }
    private func link(_ kind: Kind) -> URL { folder.appendingPathComponent("\(kind.target).wants/\(name(kind))") }

    /// Has the service ask for the capability that wakes the machine. Written by hand or by `doctor --fix`, never unasked: where the user manager
    /// does not have it the service would not start.
    package var wakeDropIn: URL { folder.appendingPathComponent(name(.service) + ".d/wake.conf") }

    /// A user manager listens.
    package var hasManager: Bool {
        guard let runtime = environment["XDG_RUNTIME_DIR"] else { return false }
        return access(runtime + "/systemd/private", F_OK) == 0
    }

    /// The user manager of this person runs from boot on, whether they are logged in or not. logind keeps a file of their name for that
    /// (loginctl(1), enable-linger).
    package static var lingers: Bool {
        guard let entry = getpwuid(getuid()) else { return false }
        return access("/var/lib/systemd/linger/" + String(cString: entry.pointee.pw_name), F_OK) == 0
    }

    /// The process of this person's user manager; `nil`: there is none, or it stands in another control group than logind's.
    package static var managerProcess: Int32? {
        let user = getuid()
        let group = "user.slice/user-\(user).slice/user@\(user).service/init.scope/cgroup.procs"
        for tree in ["/sys/fs/cgroup/", "/sys/fs/cgroup/systemd/"] {
            guard let text = try? String(contentsOfFile: tree + group, encoding: .utf8) else { continue }
            return text.split(separator: "\n").first.flatMap { Int32($0) }
        }
        return nil
    }

    // MARK: What is there

    package func isInstalled(_ kind: Kind) -> Bool { access(url(kind).path, F_OK) == 0 }

    /// The user manager starts it at login.
    package func isEnabled(_ kind: Kind) -> Bool {
        let link = link(kind)
        guard let target = try? FileManager.default.destinationOfSymbolicLink(atPath: link.path) else { return false }
        // A person's own may be relative.
        let folder = link.deletingLastPathComponent()
        return PathName.canonical(PathName.absolute(target, in: folder.path)) == PathName.canonical(url(kind).path)
    }

    /// Somebody keeps the user manager from using it.
    /// An empty file, which systemd takes for the same, is what a power cut or a full disk leaves: it is written again.
    package func isMasked(_ kind: Kind) -> Bool {
        (try? FileManager.default.destinationOfSymbolicLink(atPath: url(kind).path)) == "/dev/null"
    }

    /// `nil`: it is not there, or cannot be read.
    package func text(_ kind: Kind) -> String? { try? String(contentsOf: url(kind), encoding: .utf8) }

    /// What the service's own file asks to be there, and is not; `nil`: it is.
    package var missingProgram: String? { text(.service).flatMap { ServiceText($0, isAdded: false).missingPath } }

    /// The moment that the timer waits for, as the user manager has it; `nil`: it has none, or could not be asked.
    package var nextMoment: Date? { (try? manager.nextMoment(of: name(.timer))) ?? nil }

    // MARK: Installing

    /// Writes service and socket, and has the user manager hear of them. Repeating it is harmless.
    ///
    /// - Parameters:
    ///   - command: what the service starts: a program, and words that need no quotes.
    ///   - program: what has to be there for it.
    package func install(command: [String], program: String, displayName: String) throws(StoreError) {
        let text = UnitText(directories: directories, environment: environment, displayName: displayName)
        try write(text.service(command: command, program: program, socket: name(.socket)), .service)
        // What somebody masked stays so: the agent says it, and does not leave.
        if !isMasked(.socket) { try write(text.socket, .socket) }
        try? manager.reload()
        try? manager.start(name(.socket), waits: false)
    }

    /// What the person set beside them, ``wakeDropIn``, stays.
    ///
    /// - Returns: the path of the service, if that was there.
    package func remove() -> String? {
        let others = [Kind.socket, .timer].filter { isInstalled($0) }
        if hasManager { for kind in others { try? manager.stop(name(kind)) } }
        for kind in Kind.allCases { unlink(link(kind).path) }
        for kind in others { unlink(url(kind).path) }
        let wasThere = unlink(url(.service).path) == 0
        if hasManager, wasThere || !others.isEmpty { try? manager.reload() }
        return wasThere ? url(.service).path : nil
    }

    /// A link needs no bus, as `systemctl enable` does.
    private func write(_ text: String, _ kind: Kind) throws(StoreError) {
        try StartingFile.write(text, to: url(kind))
        let link = link(kind)
        try StartingFile.makeFolder(link.deletingLastPathComponent())
        unlink(link.path)
        guard symlink(url(kind).path, link.path) == 0 else {
            let number = errno
            throw .cannotCreate(path: link.path, reason: String(cString: strerror(number)))
        }
    }

    // MARK: Starting

    /// `false` where systemd does not take it.
    @discardableResult
    package func startService() -> Bool {
        do throws(Failure) { try manager.start(name(.service), waits: false) } catch { return false }
        return true
    }

    /// Has the user manager start the service, if it does not run. Cost: two system calls.
    ///
    /// - Returns: `false`: nobody listens.
    package func ring() -> Bool {
        guard let path = bell, let socket = LocalSocket.connect(to: path, sendsDatagrams: true) else { return false }
        // A queue that is full has rung already.
        return socket.write([1]) || errno == EAGAIN
    }

    /// Where the socket is; `nil`: there is no runtime folder.
    package var bell: String? { environment["XDG_RUNTIME_DIR"].map { $0 + "/\(directories.appIdentifier)/bell" } }

    /// Conditions of a person's own, a file from a backup, or a program that moved: the manager would skip the service, and say nothing.
    ///
    /// - Throws: where the service would not start its program, or where that is not sure.
    package func demandService() throws(Failure) {
        if isMasked(.service) { throw Failure("\(name(.service)) is masked") }
        for path in try manager.files(of: name(.service)) {
            if path.isEmpty { throw Failure("the user manager does not know \(name(.service))") }
            guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { throw Failure("\(path) cannot be read") }
            if let line = ServiceText(text, isAdded: path != url(.service).path).obstacle {
                throw Failure("\(path) says \(line)")
            }
        }
    }

    /// - Throws: where ringing would start nothing.
    package func demandSocket() throws(Failure) {
        for kind in [Kind.service, .socket] where isMasked(kind) { throw Failure("\(name(kind)) is masked") }
        guard isInstalled(.service) else { throw Failure("\(url(.service).path) is not there") }
        if try manager.property("ActiveState", of: name(.socket)) == "active" { return }
        do throws(Failure) {
            try manager.start(name(.socket))
        } catch {
            // systemd starts no socket beside a service that runs, as after an `unschedule` that stopped it. Started anew the service brings it
            // along. One that failed it would not bring.
            if property("ActiveState", of: .socket) == "inactive", property("ActiveState", of: .service) == "active" {
                try? manager.restart(name(.service), waits: false)
            }
            throw error
        }
    }

    // MARK: The timer

    /// Has the user manager start the service then, also after a reboot or a sleep, and whenever clock or time zone are set.
    ///
    /// Cost: a few questions. Where the timer's text is another than before, tens of milliseconds of the user manager's, which reads all its units
    /// again.
    /// - Parameter instant: `nil`: only when clock or time zone are set.
    package func arm(at instant: Date?, displayName: String, now: Date = Date()) throws(Failure) {
        if isMasked(.timer) { throw Failure("\(name(.timer)) is masked") }
        let text = UnitText(directories: directories, environment: environment, displayName: displayName)
            .timer(at: instant.map { TimerMoment($0, now: now) })
        let isAnother = self.text(.timer) != text || !isEnabled(.timer)
        if isAnother {
            do throws(StoreError) { try write(text, .timer) } catch { throw Failure("\(error)") }
            try manager.reload()
        }
        try demandService()
        if try hasStarted(by: instant) { return }
        // It may have read its units between an earlier change of the file and now.
        if !isAnother {
            try manager.reload()
            if try hasStarted(by: instant) { return }
        }
        throw Failure("the user manager did not take the moment of \(name(.timer))")
    }

    /// The timer runs, and waits for nothing later. A line that systemd does not understand it leaves out, and starts the timer all the same; and a
    /// person may have lines of their own.
    private func hasStarted(by instant: Date?) throws(Failure) -> Bool {
        try manager.restart(name(.timer), waits: true)
        guard try manager.startedUnit(of: name(.timer)) == name(.service) else { return false }
        guard let instant else { return true }
        guard let next = try manager.nextMoment(of: name(.timer)) else { return false }
        // Rounded up to a second.
        return next.timeIntervalSince(instant) < 2
    }

    // MARK: Asking the user manager

    /// `nil`: it could not be asked.
    package func property(_ property: String, of kind: Kind) -> String? { try? manager.property(property, of: name(kind)) }
}
