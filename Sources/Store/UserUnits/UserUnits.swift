import Foundation
import Glibc
import ProcessSupport

/// The units with which a systemd user manager starts an app's agent again after the agent has exited. The service runs the
/// agent. The socket starts the service when an app sends a change notification. The timer starts the service at the next due
/// time. The unit files are in the user's configuration folder.
package struct UserUnits: Sendable {
    package enum Kind: String, CaseIterable, Sendable {
        case service, socket, timer, path

        /// The target that starts the unit at login.
        fileprivate var target: String {
            switch self {
            case .service: "default.target"
            case .socket: "sockets.target"
            case .timer: "timers.target"
            case .path: "paths.target"
            }
        }
    }

    /// The reason why a unit cannot be used. ``description`` is a sentence for the user.
    package struct Failure: Error, Equatable, CustomStringConvertible, Sendable {
        package let description: String

        package init(_ description: String) { self.description = description }
    }

    package let directories: AppDirectories
    private let environment: [String: String]
    private let manager: any UserManager

    /// - Parameter manager: the interface to the user manager, or `nil` for `systemctl`.
    package init(
        directories: AppDirectories, environment: [String: String] = ThisProcess.environment,
        manager: (any UserManager)? = nil
    ) {
        (self.directories, self.environment) = (directories, environment)
        self.manager = manager ?? Systemctl(environment: environment)
    }

    // MARK: Paths

    package func name(_ kind: Kind) -> String { "background-agent-\(directories.appIdentifier).\(kind.rawValue)" }

    private var folder: URL { directories.configuration.deletingLastPathComponent().appendingPathComponent("systemd/user") }
    package func url(_ kind: Kind) -> URL { folder.appendingPathComponent(name(kind)) }
    private func link(_ kind: Kind) -> URL { folder.appendingPathComponent("\(kind.target).wants/\(name(kind))") }

    /// The drop-in file with which the service requests the capability to wake the machine. The user or `doctor --fix` writes the
    /// file. The app never writes this file, because the service does not start if the user manager does not have the capability.
    package var wakeDropIn: URL { folder.appendingPathComponent(name(.service) + ".d/wake.conf") }

    /// `true` if a user manager is running.
    package var hasManager: Bool {
        guard let runtime = environment["XDG_RUNTIME_DIR"] else { return false }
        return access(runtime + "/systemd/private", F_OK) == 0
    }

    /// `true` if the user manager runs from boot on, even if the user is not logged in. In this case logind has created a file
    /// with the user's name (loginctl(1), enable-linger).
    package static var lingers: Bool {
        guard let entry = getpwuid(getuid()) else { return false }
        return access("/var/lib/systemd/linger/" + String(cString: entry.pointee.pw_name), F_OK) == 0
    }

    /// The process number of the user manager. `nil` if no user manager is running, or if its control group differs from the
    /// control group that logind uses.
    package static var managerProcess: Int32? {
        let user = getuid()
        let group = "user.slice/user-\(user).slice/user@\(user).service/init.scope/cgroup.procs"
        for tree in ["/sys/fs/cgroup/", "/sys/fs/cgroup/systemd/"] {
            guard let text = try? String(contentsOfFile: tree + group, encoding: .utf8) else { continue }
            return text.split(separator: "\n").first.flatMap { Int32($0) }
        }
        return nil
    }

    // MARK: State

    package func isInstalled(_ kind: Kind) -> Bool { access(url(kind).path, F_OK) == 0 }

    /// Returns whether the user manager starts the unit at login.
    package func isEnabled(_ kind: Kind) -> Bool {
        let link = link(kind)
        guard let target = try? FileManager.default.destinationOfSymbolicLink(atPath: link.path) else { return false }
        // The target is converted to an absolute path, because the user may have created a relative link.
        let folder = link.deletingLastPathComponent()
        return PathName.canonical(PathName.absolute(target, in: folder.path)) == PathName.canonical(url(kind).path)
    }

    /// Returns whether the user masked the unit, so that the user manager does not use the unit. systemd also treats an empty
    /// unit file as masked. In this method an empty file does not count as masked. Such a file is probably the result of a power
    /// cut or a full disk, and must be written again.
    package func isMasked(_ kind: Kind) -> Bool {
        (try? FileManager.default.destinationOfSymbolicLink(atPath: url(kind).path)) == "/dev/null"
    }

    /// Returns the text of the unit's file, or `nil` if the file does not exist or cannot be read.
    package func text(_ kind: Kind) -> String? { try? String(contentsOf: url(kind), encoding: .utf8) }

    /// The first path that the service's file requires and that does not exist, or `nil` if all required paths exist.
    package var missingProgram: String? { text(.service).flatMap { ServiceText($0, isAdded: false).missingPath } }

    /// The next time of the timer, as the user manager reports it. The value is `nil` if the timer has no next time, or if the
    /// user manager did not respond.
    package var nextElapse: Date? { (try? manager.nextElapse(of: name(.timer))) ?? nil }

    // MARK: Installing

    /// Writes the service and the socket, and reloads the user manager. The call can be repeated.
    ///
    /// - Parameters:
    ///   - command: the command of the service: a program, and arguments that need no quotes.
    ///   - program: the path of a program. systemd starts the service only if the path exists.
    package func install(command: [String], program: String, displayName: String) throws(StoreError) {
        let text = UnitText(directories: directories, environment: environment, displayName: displayName)
        try write(text.service(command: command, program: program, socket: name(.socket)), .service)
        // A masked socket is not changed. If the socket is masked, the agent reports the mask, and does not exit.
        if !isMasked(.socket) { try write(text.socket, .socket) }
        try? manager.reload()
        try? manager.start(name(.socket), waits: false)
    }

    /// Removes the units. The drop-in file ``wakeDropIn`` is kept, because the user created or requested it.
    ///
    /// - Returns: the path of the service's file, if it existed.
    package func remove() -> String? {
        let others = [Kind.socket, .timer, .path].filter { isInstalled($0) }
        if hasManager { for kind in others { try? manager.stop(name(kind)) } }
        for kind in Kind.allCases { unlink(link(kind).path) }
        for kind in others { unlink(url(kind).path) }
        let wasThere = unlink(url(.service).path) == 0
        if hasManager, wasThere || !others.isEmpty { try? manager.reload() }
        return wasThere ? url(.service).path : nil
    }

    /// Writes a unit and the link that enables the unit. `systemctl enable` would also create this link, but needs a message bus.
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

    /// Requests the start of the service. Returns `false` if the user manager refuses the request.
    @discardableResult
    package func startService() -> Bool {
        do throws(Failure) { try manager.start(name(.service), waits: false) } catch { return false }
        return true
    }

    /// Sends a datagram to the agent's socket (a change notification). If the service is not running, the user manager starts the
    /// service. Cost: two system calls.
    ///
    /// - Returns: `false` if no process listens on the socket.
    package func ring() -> Bool {
        guard let path = bell, let socket = LocalSocket.connect(to: path, sendsDatagrams: true) else { return false }
        // If the queue of the socket is full (EAGAIN), it already contains a change notification.
        return socket.write([1]) || errno == EAGAIN
    }

    /// The path of the agent's socket, or `nil` if `XDG_RUNTIME_DIR` is not set.
    package var bell: String? { environment["XDG_RUNTIME_DIR"].map { $0 + "/\(directories.appIdentifier)/bell" } }

    /// Checks that the service would start its program. The user may have added a condition, the unit file may come from a
    /// backup, or the program may have been moved. In these cases the user manager would not start the program, and would not
    /// report an error.
    ///
    /// - Throws: an error if the service would not start its program, or if the check is not possible.
    package func demandService() throws(Failure) {
        if isMasked(.service) { throw Failure("\(name(.service)) is masked") }
        for path in try manager.files(of: name(.service)) {
            if path.isEmpty { throw Failure("the user manager has no unit \(name(.service))") }
            guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { throw Failure("\(path) cannot be read") }
            if let line = ServiceText(text, isAdded: path != url(.service).path).obstacle {
                throw Failure("\(path) contains the line \(line)")
            }
        }
    }

    /// - Throws: an error if a change notification would not start the service.
    package func demandSocket() throws(Failure) {
        for kind in [Kind.service, .socket] where isMasked(kind) { throw Failure("\(name(kind)) is masked") }
        guard isInstalled(.service) else { throw Failure("\(url(.service).path) does not exist") }
        if try manager.property("ActiveState", of: name(.socket)) == "active" { return }
        do throws(Failure) {
            try manager.start(name(.socket))
        } catch {
            // systemd does not start a socket while the socket's service is running, for example after `unschedule` has stopped
            // the socket. A restart of the service also starts the socket, if the socket has not failed.
            if property("ActiveState", of: .socket) == "inactive", property("ActiveState", of: .service) == "active" {
                try? manager.restart(name(.service), waits: false)
            }
            throw error
        }
    }

    // MARK: The timer

    /// Sets the timer. The user manager then starts the service at the given time, also after a reboot or a sleep. The timer also
    /// starts the service when the clock or the time zone changes.
    ///
    /// Cost: a few requests to the user manager. If the text of the timer has changed, the user manager also needs tens of
    /// milliseconds, because it reads all its units again.
    /// - Parameter instant: the time, or `nil` to start the service only when the clock or the time zone changes.
    package func arm(at instant: Date?, displayName: String, now: Date = Date()) throws(Failure) {
        if isMasked(.timer) { throw Failure("\(name(.timer)) is masked") }
        let text = UnitText(directories: directories, environment: environment, displayName: displayName)
            .timer(at: instant.map { TimerSchedule($0, now: now) })
        let isAnother = self.text(.timer) != text || !isEnabled(.timer)
        if isAnother {
            do throws(StoreError) { try write(text, .timer) } catch { throw Failure("\(error)") }
            try manager.reload()
        }
        try demandService()
        if try hasStarted(by: instant) { return }
        // Another process may have changed the timer's file before, and the user manager may not have read the change. For this
        // reason, the user manager reads all unit files again.
        if !isAnother {
            try manager.reload()
            if try hasStarted(by: instant) { return }
        }
        throw Failure("the user manager did not accept the start time in \(name(.timer))")
    }

    /// Restarts the timer, and returns whether the timer waits for the given time or an earlier time. The check is necessary,
    /// because systemd ignores a line that it does not support, and still starts the timer. A user may also have added lines to
    /// the timer's file.
    private func hasStarted(by instant: Date?) throws(Failure) -> Bool {
        try manager.restart(name(.timer), waits: true)
        guard try manager.startedUnit(of: name(.timer)) == name(.service) else { return false }
        guard let instant else { return true }
        guard let next = try manager.nextElapse(of: name(.timer)) else { return false }
        // A difference below 2 s is accepted, because the time is rounded up to a complete second.
        return next.timeIntervalSince(instant) < 2
    }

    // MARK: Folders

    /// Sets the folders whose changes start the service. Without folders, the unit is removed.
    package func watch(_ folders: [String], displayName: String) throws(Failure) {
        guard !folders.isEmpty else {
            guard isInstalled(.path) else { return }
            try? manager.stop(name(.path))
            unlink(link(.path).path)
            unlink(url(.path).path)
            return try manager.reload()
        }
        if isMasked(.path) { throw Failure("\(name(.path)) is masked") }
        // A unit file cannot contain the path of such a folder.
        if let folder = folders.first(where: { $0.contains(where: \.isNewline) || $0.hasSuffix(" ") }) {
            throw Failure("the folder \(folder) cannot be watched by a unit")
        }
        let text = UnitText(directories: directories, environment: environment, displayName: displayName).path(folders)
        if self.text(.path) != text || !isEnabled(.path) {
            do throws(StoreError) { try write(text, .path) } catch { throw Failure("\(error)") }
            try manager.reload()
        }
        try manager.restart(name(.path), waits: true)
        guard try manager.property("ActiveState", of: name(.path)) == "active" else {
            throw Failure("the user manager did not accept the folders in \(name(.path))")
        }
    }

    // MARK: Properties

    /// Returns a property of a unit, or `nil` if the user manager did not respond.
    package func property(_ property: String, of kind: Kind) -> String? { try? manager.property(property, of: name(kind)) }
}
