import CLinux

/// The version of Stormy, as `Package.swift` defines it.
package enum ProductVersion {
    /// The version that `--version` prints. If a program was built from a commit after the last release, the version contains the
    /// number of commits and the hash, for example `0.2.0+45.g1a2b3c4d5`. The Debian package with this program has an equal
    /// version.
    package static let complete = String(cString: clinux_stormy_version())

    /// The version of the last release, without the number of later commits, for example `0.2.0`.
    package static let released = String(complete.prefix { $0 != "+" })
}
