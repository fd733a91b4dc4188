import CLinux

/// The version of Stormy. `Package.swift` is its only source.
package enum ProductVersion {
    /// The version that `--version` prints. If an installed program was built from a later commit, the version contains the
    /// number of commits and the hash, for example `0.2.0+45.g1a2b3c4d5`. The version of its package is the same.
    package static let complete = String(cString: clinux_stormy_version())

    /// The version of the last release, without the number of later commits, for example `0.2.0`.
    package static let released = String(complete.prefix { $0 != "+" })
}
