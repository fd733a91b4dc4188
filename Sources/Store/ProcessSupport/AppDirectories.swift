import CLinux
import Foundation

/// Where an app's background work lives on disk: the XDG base directories, one folder per app id.
package struct AppDirectories: Sendable, Equatable {
    package let appIdentifier: String
    package let configuration: URL
    package let state: URL
    package let data: URL
    /// `nil` without `XDG_RUNTIME_DIR`: cron and some ssh sessions have none.
    package let runtime: URL?
    /// Why these folders cannot be used. `nil` if they can.
    package let refusal: StoreError?

    /// Relative paths in the variables are ignored, as the XDG specification asks.
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
        data = folder("XDG_DATA_HOME", ".local/share")
        runtime = absolute("XDG_RUNTIME_DIR")?.appendingPathComponent(appIdentifier)
        refusal =
            Self.variables.compactMap { name -> StoreError? in
                guard let path = absolute(name)?.path, let fault = Self.fault(in: path) else { return nil }
                return .unusableFolder(variable: name, fault: fault)
            }.first
    }

    private static let variables = ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"]

    /// A URL cannot contain other bytes than UTF-8, and a line of a unit or of a desktop entry cannot contain a line break.
    ///
    /// Foundation puts U+FFFD in the place of bytes that are not UTF-8: the files would be in another folder than the user named.
    private static func fault(in path: String) -> StoreError.FolderFault? {
        if path.unicodeScalars.contains(where: { $0 == "\u{FFFD}" }) { return .notUTF8 }
        return path.unicodeScalars.contains { $0 == "\n" || $0 == "\r" } ? .lineBreak : nil
    }

    /// An app's id becomes a folder name and part of a unit name: 1 to 64 letters, digits, '.', '-' and '_'.
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

    /// Keeps the app from starting an agent if it is 1: `STORMY_NO_AGENT` for the app id `stormy`.
    package var forbiddingVariable: String {
        appIdentifier.uppercased().map { $0.isLetter || $0.isNumber ? String($0) : "_" }.joined() + "_NO_AGENT"
    }

    package var ledger: URL { state.appendingPathComponent("agent.sqlite") }
    package var agentLock: URL { state.appendingPathComponent("agent.lock") }
    package var agentLog: URL { state.appendingPathComponent("agent.log") }
    /// Processes that use the ledger lock bytes of this file: ``ProcessPresence``.
    package var processLock: URL { state.appendingPathComponent("process.lock") }
    package var launches: URL { state.appendingPathComponent("launches") }
    package var spool: URL { state.appendingPathComponent("spool") }
    /// Copies of files to upload that no row of the ledger knows.
    package var leftCopies: URL { state.appendingPathComponent("spool-left") }
    /// How the name of a copy of a file to upload begins.
    package static let copyPrefix = "upload-"
    /// How the name of a copy of a file that a notification shows begins.
    package static let attachmentPrefix = "attachment-"
    /// Seconds that a copy which no row knows is kept for whoever finds it again.
    package static let leftCopyRetention: Double = 30 * 86_400
    /// Shared by whoever puts files there before any row names them; taken alone by who removes what no row names.
    package var spoolLock: URL { state.appendingPathComponent("spool.lock") }

    package func launchLock(_ id: Int64) -> URL { launches.appendingPathComponent("\(id).lock") }

    /// Makes the state folders, for their owner alone (0700).
    package func createStateFolders() throws(StoreError) {
        if let refusal { throw refusal }
        for folder in [state, launches] { try Self.createPrivateFolder(folder) }
        // The spool is older than the ledger: this one was removed, or is on a disk that is away.
        let isReplacement = access(spool.path, F_OK) != 0 && access(ledger.path, F_OK) == 0
        try Self.createPrivateFolder(spool)
        guard isReplacement, let inode = Self.inode(of: spool) else { return }
        try? Data("\(inode)".utf8).write(to: Self.replacementMark(of: spool))
    }

    /// Holds the number of a spool folder that was made while its ledger existed.
    private static func replacementMark(of spool: URL) -> URL {
        spool.deletingLastPathComponent().appendingPathComponent("spool-replaced")
    }

    /// Returns whether the spool was made while its ledger existed. The user may put back the folder with the queued copies.
    package static func isReplacement(_ spool: URL) -> Bool {
        guard let inode = inode(of: spool) else { return false }
        return (try? Data(contentsOf: replacementMark(of: spool))) == Data("\(inode)".utf8)
    }

    private static func inode(of folder: URL) -> UInt64? {
        var information = stat()
        return stat(folder.path, &information) == 0 ? UInt64(information.st_ino) : nil
    }

    /// Makes a folder and its missing parents; the folder itself gets mode 0700.
    package static func createPrivateFolder(_ url: URL) throws(StoreError) {
        do {
            try FileManager.default.createDirectory(
                at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch {
            let trouble = StoreError.notOpened(url.path, systemNumber(error))
            if trouble.isPassing { throw trouble }
            throw .cannotCreate(path: url.path, reason: systemReason(error))
        }
        // An existing folder may be wider than we want.
        _ = chmod(url.path, 0o700)
        var information = stat()
        guard stat(url.path, &information) == 0, information.st_uid == geteuid(), information.st_mode & 0o022 == 0 else {
            // Whoever owns it could name the program that the agent launches.
            throw .cannotCreate(path: url.path, reason: "the folder belongs to somebody else, or others may write to it")
        }
    }
}

/// What the system says of it; 0: nothing.
private func systemNumber(_ error: any Error) -> Int32 {
    let underlying = (error as NSError).userInfo[NSUnderlyingErrorKey] as? NSError
    if let underlying, underlying.domain == NSPOSIXErrorDomain { return Int32(underlying.code) }
    return (error as? CocoaError)?.code == .fileWriteOutOfSpace ? ENOSPC : 0
}

/// The sentence the system has for an error, without Foundation's wrapping.
func systemReason(_ error: any Error) -> String {
    let nsError = error as NSError
    if let underlying = nsError.userInfo[NSUnderlyingErrorKey] as? NSError, underlying.domain == NSPOSIXErrorDomain {
        return String(cString: strerror(Int32(underlying.code)))
    }
    // What stands in the way, at the name itself or higher up.
    let taken = [CocoaError.fileWriteFileExists.rawValue, CocoaError.fileWriteUnknown.rawValue]
    if nsError.domain == NSCocoaErrorDomain, taken.contains(nsError.code) {
        return "something that is not a folder is in the way"
    }
    return nsError.localizedDescription
}
