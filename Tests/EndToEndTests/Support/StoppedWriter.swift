import Foundation
import Glibc
import Testing

extension Home {
    /// Starts a process and stops it during a transaction, as Ctrl+Z would.
    ///
    /// - Parameter file: The path of a store in the home.
    func stopAWriter(of file: String) throws -> Child {
        let script = """
            import os, signal, sqlite3, sys
            connection = sqlite3.connect(sys.argv[1], isolation_level=None)
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("CREATE TABLE held (x)")
            open(sys.argv[2], "w").close()
            os.kill(os.getpid(), signal.SIGSTOP)
            """
        let mark = folder.appendingPathComponent("held")
        let path = folder.appendingPathComponent(file).path
        let holder = try Child("python3", ["-c", script, path, mark.path], environment: environment)
        var status: Int32 = 0
        try #require(waitpid(holder.pid, &status, WUNTRACED) == holder.pid && FileManager.default.fileExists(atPath: mark.path))
        return holder
    }
}
