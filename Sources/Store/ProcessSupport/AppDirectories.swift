import Foundation

/// The folders of an app's background work. Each app id has its own folder in the XDG base directories.
package struct AppDirectories: Sendable, Equatable {
    package let appIdentifier: String
    package let configuration: URL
    package let state: URL
    package let data: URL
    /// The spool: the folder with queued copies and partial files.
    package let spool: URL
    /// The runtime folder, or `nil` if `XDG_RUNTIME_DIR` is not set, for example in cron and in some ssh sessions.
    package let runtime: URL?
    /// The reason why these folders cannot be used, or `nil` if the folders can be used.
    package let refusal: StoreError?

    /// Creates the paths from environment variables. A variable with a relative path is ignored, as the XDG specification
    /// requires.
    package init(appIdentifier: String, environment: [String: String] = ThisProcess.environment) {
        self.appIdentifier = appIdentifier
        func absolute(_ name: String) -> URL? {
            guard let path = environment[name], path.hasPrefix("/") else { return nil }
            return URL(fileURLWithPath: path, isDirectory: true)
        }
        let home = absolute("HOME") ?? URL(fileURLWithPath: NSHomeDirectory(), isDirectory: true)
        func folder(_ name: String, _ fallback: String) -> URL {
            (absolute(name) ?? home.appendingPathComponent(fallback)).appendingPathComponent(appIdentifier)
        }
        configuration = folder("XDG_CONFIG_HOME", ".config")
        state = folder("XDG_STATE_HOME", ".local/state")
        spool = state.appendingPathComponent("spool", isDirectory: true)
        data = folder("XDG_DATA_HOME", ".local/share")
        runtime = absolute("XDG_RUNTIME_DIR")?.appendingPathComponent(appIdentifier)
        refusal =
            Self.variables.compactMap { name -> StoreError? in
                guard let path = absolute(name)?.path, let fault = Self.fault(in: path) else { return nil }
                return .unusableFolder(variable: name, fault: fault)
            }.first
    }

    private static let variables = ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"]

    /// Returns the reason why a path cannot be used, or `nil` if the path can be used. A path must be UTF-8, because URLs can
    /// contain only UTF-8. A path must not contain a line break, because it is written to a line of a unit file or a desktop
    /// entry.
    ///
    /// Foundation replaces bytes that are not UTF-8 with U+FFFD, so the files would be in another folder than the folder that the
    /// user chose.
    private static func fault(in path: String) -> StoreError.FolderFault? {
        if path.unicodeScalars.contains(where: { $0 == "\u{FFFD}" }) { return .notUTF8 }
        return path.unicodeScalars.contains { $0 == "\n" || $0 == "\r" } ? .lineBreak : nil
    }

    /// Returns whether an identifier can be a folder name and a part of a unit name. Such an identifier consists of 1 to 64
    /// letters, digits, '.', '-' and '_'.
    package static func isUsable(_ identifier: String) -> Bool {
        (1...64).contains(identifier.utf8.count) && identifier != "." && identifier != ".."
            && identifier.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
                    true
                default: false
                }
            }
    }

    /// The environment variable that prevents the app from starting an agent if its value is 1. For the app id `stormy`, the
    /// variable is `STORMY_NO_AGENT`.
    package var forbiddingVariable: String {
        appIdentifier.uppercased().map { $0.isLetter || $0.isNumber ? String($0) : "_" }.joined() + "_NO_AGENT"
    }

    package var ledger: URL { state.appendingPathComponent("agent.sqlite", isDirectory: false) }
    package var agentLock: URL { state.appendingPathComponent("agent.lock", isDirectory: false) }
    /// The lock file that a process locks while it starts an agent. The agent inherits the lock.
    package var agentStart: URL { state.appendingPathComponent("agent.start", isDirectory: false) }
    package var agentLog: URL { state.appendingPathComponent("agent.log", isDirectory: false) }
    /// The file in which each process that uses the ledger locks a byte. See ``ProcessPresence``.
    package var processLock: URL { state.appendingPathComponent("process.lock", isDirectory: false) }
    package var launches: URL { state.appendingPathComponent("launches", isDirectory: true) }
    /// Returns the path of a file in the spool. The method does not access the disk.
    package func spooled(_ name: String) -> URL { spool.appendingPathComponent(name, isDirectory: false) }

    /// The folder for copies of files to upload that have no row in the ledger.
    package var leftCopies: URL { state.appendingPathComponent("spool-left", isDirectory: true) }
    /// The prefix of the names of copies of files to upload.
    package static let copyPrefix = "upload-"
    /// The prefix of the names of copies of a notification's files.
    package static let attachmentPrefix = "attachment-"
    /// The time in seconds for which a copy without a row in the ledger is kept.
    package static let leftCopyRetention: Double = 30 * 86_400
    /// The lock file of the spool. A process that creates a file holds a shared lock until the file has a row in the ledger. A
    /// process that removes files without rows holds an exclusive lock.
    package var spoolLock: URL { state.appendingPathComponent("spool.lock", isDirectory: false) }

    package func launchLock(_ id: Int64) -> URL { launches.appendingPathComponent("\(id).lock", isDirectory: false) }

    /// Creates the state folders. Only the owner of the folders has access (0700).
    package func createStateFolders() throws(StoreError) {
        if let refusal { throw refusal }
        for folder in [state, launches, spool] { try Self.createPrivateFolder(folder) }
    }

    /// Creates a folder, and the parent folders that do not exist. The folder itself gets mode 0700.
    package static func createPrivateFolder(_ url: URL) throws(StoreError) {
        try make(url.path, for: url)
        // The mode is set again, because an existing folder may have a less strict mode.
        _ = chmod(url.path, 0o700)
        var information = stat()
        guard stat(url.path, &information) == 0 else { throw notSeen(url, errno) }
        guard information.st_uid == geteuid(), information.st_mode & 0o022 == 0 else {
            // A folder of another user is refused, because the other user could choose the program that the agent launches.
            throw .unsafeFolder(path: url.path)
        }
    }

    /// Creates one folder. The mode is set again, because the umask may deny the user access to the folder.
    private static func makeOne(_ path: String) -> Bool {
        guard mkdir(path, 0o700) == 0 else { return false }
        chmod(path, 0o700)
        return true
    }

    /// - Parameter url: The requested folder. If a parent folder causes an error, the error also contains the path of the
    ///   requested folder.
    private static func make(_ path: String, for url: URL) throws(StoreError) {
        if makeOne(path) { return }
        let (number, parent) = (errno, (path as NSString).deletingLastPathComponent)
        switch FileFault(number) {
        case .exists: return try requireFolder(path, for: url)
        case .missing where parent != path && !parent.isEmpty:
            try make(parent, for: url)
            if makeOne(path) { return }
            let number = errno
            // If another process created the folder first, this process checks the folder.
            guard FileFault(number) == .exists else { throw notMade(url, number) }
            try requireFolder(path, for: url)
        case .missing, .noFolder, .notAFile, .unsupported, .impossible, .noRoom, .notAllowed, .unavailable:
            throw notMade(url, number)
        }
    }

    private static func requireFolder(_ path: String, for url: URL) throws(StoreError) {
        var information = stat()
        if stat(path, &information) == 0, information.st_mode & S_IFMT == S_IFDIR { return }
        let number = information.st_mode == 0 ? errno : ENOTDIR
        switch FileFault(number) {
        // With these errors, the path is a link without a target.
        case .missing, .noFolder, .notAFile: throw notMade(url, ENOTDIR)
        case .exists, .unsupported, .impossible, .noRoom, .notAllowed, .unavailable: throw notSeen(url, number)
        }
    }

    static func notMade(_ url: URL, _ number: Int32) -> StoreError {
        if FileFault(number) == .noFolder {
            return .cannotCreate(path: url.path, reason: "something that is not a folder has this name")
        }
        let trouble = StoreError.notOpened(url.path, number)
        return trouble.isPassing ? trouble : .cannotCreate(path: url.path, reason: String(cString: strerror(number)))
    }

    /// Returns the error for a folder that exists and cannot be accessed. A later attempt may succeed, because permissions and
    /// disks can change.
    static func notSeen(_ url: URL, _ number: Int32) -> StoreError {
        .troubled(path: url.path, reason: String(cString: strerror(number)))
    }
}
