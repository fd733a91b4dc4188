import Foundation
import ProcessSupport

/// Finds other programs that were installed together with this program.
package enum CompanionProgram {
    package struct Missing: Error, CustomStringConvertible {
        let name: String
        let folder: String
        /// The paths that were searched, in the order of the search.
        package let places: [String]

        /// A message for the user. The folders of `PATH` are not listed, because `PATH` may be long.
        package var description: String { "\(name) was not found in \(folder), \(folder)/../libexec, \(folder)/../bin or PATH" }
    }

    /// The environment variable that contains the path of the program that started a companion program. With this path, the
    /// companion program can run commands of the starting program.
    package static let starterVariable = "BACKGROUND_STARTED_BY"

    /// Finds a program next to this program, in `../libexec`, in `../bin`, then in `PATH`.
    ///
    /// - Parameter override: the name of an environment variable that contains a path. This path is tried first.
    package static func find(
        _ name: String, environment: [String: String] = ThisProcess.environment, override: String? = nil
    ) -> Result<String, Missing> {
        let folder = AppManifest.executableURL.deletingLastPathComponent()
        let installation = folder.deletingLastPathComponent()
        var places = [override.flatMap { environment[$0] }].compactMap { $0 }
        places += [
            folder.appendingPathComponent(name), installation.appendingPathComponent("libexec/\(name)"),
            installation.appendingPathComponent("bin/\(name)"),
        ].map(\.path)
        places += inPath(name, environment)
        if let found = places.first(where: isProgram) { return .success(found) }
        return .failure(Missing(name: name, folder: folder.path, places: places))
    }

    /// Finds a program of the system in `PATH`.
    package static func findInPath(
        _ name: String, environment: [String: String] = ThisProcess.environment
    ) -> String? {
        inPath(name, environment).first(where: isProgram)
    }

    /// The time limit in seconds for a program that must end by itself.
    private static let patience = 30.0

    /// Starts a program without input and waits until the program ends. The call blocks the thread.
    ///
    /// - Returns: the reason why the program does not work, or `nil` if it works.
    package static func trouble(starting path: String, _ arguments: [String]) -> String? {
        let child = ChildProcess(path: path, arguments: arguments, environment: ThisProcess.environment)
        do throws(ChildProcess.Failure) {
            let end = try child.run(within: patience, outputLimit: 1_000)
            if end.wasLate { return "the program does not end" }
            if end.code == 0 { return nil }
            return end.output.split(separator: "\n").last.map(String.init) ?? "the program ended with exit code \(end.code)"
        } catch {
            return error.description
        }
    }

    private static func inPath(_ name: String, _ environment: [String: String]) -> [String] {
        (environment["PATH"] ?? "/usr/bin").split(separator: ":").map { $0 + "/" + name }
    }

    /// Returns whether a path is the path of a program. If the file cannot be examined now, the result is `true`. If the file is
    /// not a program, the start of the file fails later with a reason.
    private static func isProgram(_ path: String) -> Bool {
        var information = stat()
        guard path.hasPrefix("/") else { return false }
        guard access(path, X_OK) == 0, stat(path, &information) == 0 else { return FileFault(errno) == .unavailable }
        return information.st_mode & S_IFMT == S_IFREG
    }
}
