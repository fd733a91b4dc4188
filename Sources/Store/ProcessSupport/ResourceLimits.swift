import Glibc

/// The resource limits that a process inherits from its terminal (`ulimit`). An agent must not keep these limits, because an
/// agent runs longer than the terminal.
package enum ResourceLimits {
    /// The number of files that a process may usually open. A higher limit is not set, because the agent's children inherit the
    /// limit, and programs that call `select` support 1,024 files.
    private static let usualFileCount: rlim_t = 1_024

    /// Raises the limits of file size, processor time, memory and open files, as far as the system permits.
    package static func raise() {
        for resource in [RLIMIT_FSIZE, RLIMIT_CPU, RLIMIT_AS, RLIMIT_DATA] { raise(resource, to: .max) }
        raise(RLIMIT_NOFILE, to: usualFileCount)
    }

    private static func raise(_ resource: __rlimit_resource, to wanted: rlim_t) {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(resource.rawValue), &limit) == 0 else { return }
        let raised = min(wanted, limit.rlim_max)
        guard limit.rlim_cur < raised else { return }
        limit.rlim_cur = raised
        setrlimit(__rlimit_resource_t(resource.rawValue), &limit)
    }

    /// A text about a limit of this process that is too low for an agent, with the option of `ulimit` that sets the limit. `nil`
    /// if all limits are sufficient.
    package static var obstacle: String? {
        if let bytes = hardLimit(RLIMIT_FSIZE), bytes < 64 << 20 { return "files are limited to \(bytes) bytes (ulimit -f)" }
        if let count = hardLimit(RLIMIT_NOFILE), count < 25 { return "a process may open only \(count) files (ulimit -n)" }
        return nil
    }

    private static func hardLimit(_ resource: __rlimit_resource) -> rlim_t? {
        var limit = rlimit()
        return getrlimit(__rlimit_resource_t(resource.rawValue), &limit) == 0 ? limit.rlim_max : nil
    }
}
