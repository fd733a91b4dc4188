import Glibc

/// The resource limits that a process inherits from its terminal (`ulimit`). An agent must not keep these limits, because an
/// agent runs longer than the terminal.
package enum ResourceLimits {
    /// Raises the limits of file size, processor time and memory, as far as the system permits.
    package static func raise() {
        for resource in [RLIMIT_FSIZE, RLIMIT_CPU, RLIMIT_AS, RLIMIT_DATA] {
            var limit = rlimit()
            guard getrlimit(__rlimit_resource_t(resource.rawValue), &limit) == 0, limit.rlim_cur < limit.rlim_max else {
                continue
            }
            limit.rlim_cur = limit.rlim_max
            setrlimit(__rlimit_resource_t(resource.rawValue), &limit)
        }
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
