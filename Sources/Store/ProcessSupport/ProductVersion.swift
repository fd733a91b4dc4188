import CLinux

/// The version of Stormy. `Package.swift` is its only source.
package enum ProductVersion {
    /// The version that `--version` prints. An installed program that was built from a later commit has the number of commits and the hash
    /// in it, for example `0.2.0+45.g1a2b3c4d5`, as its package has.
    package static let complete = String(cString: clinux_stormy_version())

    /// The version without the commits after it, for example `0.2.0`.
    package static let released = String(complete.prefix { $0 != "+" })
}
