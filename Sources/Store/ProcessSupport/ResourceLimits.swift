import Glibc

/// The limits that a process inherits from its terminal (`ulimit`). An agent lives longer than the terminal.
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

    /// Bytes that a file may have in every process that this one starts; `nil` if an agent can work with the limit.
    package static var tooSmallFileSize: UInt? {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0, limit.rlim_max < 64 << 20 else { return nil }
        return UInt(limit.rlim_max)
    }
}
