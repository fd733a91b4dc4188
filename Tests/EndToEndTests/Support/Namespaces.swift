import Foundation

/// Processes in separate namespaces, with another network or other mounts. On some machines only root may start processes in
/// separate namespaces.
enum Namespaces {
    /// The option that makes a user other than root the root user of the namespace.
    private static let asRoot = getuid() == 0 ? "" : "r"

    static let areAllowed: Bool =
        (try? Child.run("unshare", ["-\(asRoot)nm", "true"], environment: ProcessInfo.processInfo.environment))?.status == 0

    /// Returns the arguments of `unshare` for a program without a network.
    static func withoutNetwork(_ program: String) -> [String] { ["-\(asRoot)n", program] }

    /// Returns the arguments of `unshare` for a shell script with private mounts.
    static func withOwnMounts(_ script: String) -> [String] { ["-\(asRoot)m", "sh", "-c", script] }

    /// Returns the arguments of `unshare` for a shell script in a private user namespace, which has separate limits.
    static func asOwnUser(_ script: String) -> [String] { ["-Ur", "sh", "-c", script] }
}
