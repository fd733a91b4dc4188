import Foundation

/// Processes that see another network or other mounts. A machine may forbid them to those who are not root.
enum Namespaces {
    /// The letter that makes somebody who is not root the root of a namespace.
    private static let asRoot = getuid() == 0 ? "" : "r"

    static let areAllowed: Bool =
        (try? Child.run("unshare", ["-\(asRoot)nm", "true"], environment: ProcessInfo.processInfo.environment))?.status == 0

    /// Arguments of `unshare` for a program without any network.
    static func withoutNetwork(_ program: String) -> [String] { ["-\(asRoot)n", program] }

    /// Arguments of `unshare` for a shell script whose mounts nobody else sees.
    static func withOwnMounts(_ script: String) -> [String] { ["-\(asRoot)m", "sh", "-c", script] }

    /// Arguments of `unshare` for a shell script with limits of its own.
    static func asOwnUser(_ script: String) -> [String] { ["-Ur", "sh", "-c", script] }
}
