import Foundation
import ProcessSupport

/// Examines the owner and the permissions of folders and files, and the free disk space.
struct FoldersExamination: Examination {
    private let check = "files"

    func findings(_ app: ExaminedApp) -> [DoctorFinding] {
        let directories = app.directories
        let folders = [directories.configuration, directories.state, directories.data, directories.spool, directories.launches]
        let files = [directories.ledger, directories.agentLock, directories.agentLog]
        let missing = [directories.configuration, directories.state, directories.data].filter { status($0.path) == nil }
        let places = Set(missing.map { existing($0.path) }).sorted().compactMap { place($0, home: app.environment["HOME"]) }
        var rows = folders.compactMap { folder($0.path) } + files.compactMap { file($0.path) } + places
        if rows.isEmpty { rows = [DoctorFinding(check, .ok, "Only this user can access the folders and files.")] }
        return rows + [room(directories)]
    }

    private func status(_ path: String) -> stat? {
        var information = stat()
        return stat(path, &information) == 0 ? information : nil
    }

    /// Examines a folder. Returns `nil` if the folder has no problem or does not exist yet.
    private func folder(_ path: String) -> DoctorFinding? {
        guard let information = status(path) else { return nil }
        guard information.st_mode & S_IFMT == S_IFDIR else { return inTheWay(path, "is not a folder") }
        if let row = owner(path, information) { return row }
        if information.st_mode & 0o022 != 0 {
            return DoctorFinding(
                check, .failed, "other users can write to \(path) and could replace the program that the agent launches",
                fix: .init("chmod go-w \(ShellWord.quoted(path))", isSafe: true))
        }
        guard information.st_mode & 0o700 == 0o700, access(path, W_OK | X_OK) == 0 else { return cannotBeWritten(path, "u+rwx") }
        return nil
    }

    /// Returns the path if it exists, otherwise the nearest existing parent folder.
    private func existing(_ path: String) -> String {
        var (url, information) = (URL(exactPath: path), stat())
        while url.path != "/", lstat(url.path, &information) != 0 { url.deleteLastPathComponent() }
        return url.path
    }

    /// Examines a folder in which the app's folders will be created.
    ///
    /// - Parameter home: the home folder. If this user owns the home folder, but another user owns a folder in it, the fix makes
    ///   this user the owner of that folder. For example, the command `sudo -E` can create folders whose owner is root.
    private func place(_ path: String, home: String?) -> DoctorFinding? {
        guard let information = status(path), information.st_mode & S_IFMT == S_IFDIR else {
            return inTheWay(path, "is not a folder")
        }
        guard access(path, W_OK | X_OK) != 0 else { return nil }
        if information.st_uid == geteuid() { return cannotBeWritten(path, "u+rwx") }
        if let home, path.hasPrefix(home + "/"), status(home)?.st_uid == geteuid() { return owner(path, information) }
        return DoctorFinding(
            check, .failed, "this user cannot create folders in \(path). Set HOME to a folder that you can write to")
    }

    private func file(_ path: String) -> DoctorFinding? {
        guard let information = status(path) else { return nil }
        guard information.st_mode & S_IFMT == S_IFREG else { return inTheWay(path, "is not a file") }
        if let row = owner(path, information) { return row }
        if information.st_mode & 0o077 != 0 {
            return DoctorFinding(
                check, .warning, "other users can read \(path)", fix: .init("chmod 600 \(ShellWord.quoted(path))", isSafe: true))
        }
        guard information.st_mode & 0o600 == 0o600, access(path, R_OK | W_OK) == 0 else { return cannotBeWritten(path, "u+rw") }
        return nil
    }

    private func owner(_ path: String, _ information: stat) -> DoctorFinding? {
        guard information.st_uid != geteuid() else { return nil }
        let root = geteuid() == 0 ? "" : "sudo "
        return DoctorFinding(
            check, .failed, "\(path) belongs to another user",
            fix: .init("\(root)chown -R \(geteuid()):\(getegid()) \(ShellWord.quoted(path))"))
    }

    private func inTheWay(_ path: String, _ reason: String) -> DoctorFinding {
        let word = ShellWord.quoted(path)
        return DoctorFinding(check, .failed, "\(path) \(reason)", fix: .init("mv \(word) \(ShellWord.quoted(path + ".aside"))"))
    }

    private func cannotBeWritten(_ path: String, _ mode: String) -> DoctorFinding {
        if DiskSpace.isReadOnly(at: path) {
            return DoctorFinding(check, .failed, "\(path) is on a disk that is mounted read-only")
        }
        return DoctorFinding(
            check, .failed, "\(path) cannot be read and written",
            fix: .init("chmod \(mode) \(ShellWord.quoted(path))", isSafe: true))
    }

    private func room(_ directories: AppDirectories) -> DoctorFinding {
        // If the app has not created its folder yet, the nearest existing parent folder is examined.
        var place = directories.state
        while place.path != "/", access(place.path, F_OK) != 0 { place.deleteLastPathComponent() }
        var disk = statvfs()
        guard statvfs(place.path, &disk) == 0 else {
            let reason = String(cString: strerror(errno))
            return DoctorFinding("disk", .failed, "\(place.path): \(reason)")
        }
        if DiskSpace.hasNoFreeInodes(at: place.path) {
            return DoctorFinding(
                "disk", .failed, "no file can be created on the disk of \(place.path), because the disk has too many files")
        }
        guard let left = DiskSpace.left(at: place.path) else {
            return DoctorFinding("disk", .ok, "The disk has enough free space.")
        }
        let bytes = Output.bytes(left)
        if left == 0 {
            return DoctorFinding("disk", .failed, "the disk of \(place.path) is full, so downloads wait until space is free")
        }
        if left < 100 << 20 {
            return DoctorFinding("disk", .warning, "only \(bytes) are left on the disk of \(place.path)")
        }
        return DoctorFinding("disk", .ok, "The disk has enough free space: \(bytes).")
    }
}
