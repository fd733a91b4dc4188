import Foundation

/// Programs of our own that an app starts for what it does not want to have in itself.
enum HelperProgram {
    /// Beside this program, in `../libexec`, then in `PATH`.
    static func find(_ name: String) -> String? {
        let folder = URL(fileURLWithPath: (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? "")
            .deletingLastPathComponent()
        let places = [folder, folder.deletingLastPathComponent().appendingPathComponent("libexec")].map(\.path)
        return executable(name, in: places) ?? inPath(name)
    }

    /// Somebody else's.
    static func inPath(_ name: String) -> String? {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin"
        return executable(name, in: path.split(separator: ":").map(String.init))
    }

    private static func executable(_ name: String, in folders: [String]) -> String? {
        folders.map { $0 + "/" + name }.first { FileManager.default.isExecutableFile(atPath: $0) }
    }
}
