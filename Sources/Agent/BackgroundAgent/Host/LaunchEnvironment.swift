import BackgroundLedger
import ProcessSupport

/// The environment variables that a launch inherits from its agent. A launch does not inherit all variables, because the agent has
/// the variables of the terminal or the login that started it, and some of them contain secrets.
enum LaunchEnvironment {
    /// The names of variables. A `*` at the end matches the rest of a name. `WithoutSystemd.md` lists them.
    static let names: [String] = [
        // The user.
        "HOME", "LOGNAME", "PATH", "SHELL", "TMPDIR", "USER",
        // Language and time.
        "LANG", "LANGUAGE", "LC_*", "LOCALE_ARCHIVE", "TZ", "TZDIR",
        // The desktop, and the libraries that draw on it.
        "BROWSER", "DBUS_*", "DESKTOP_*", "DISPLAY", "GDK_*", "GIO_*", "GNOME_*", "GSETTINGS_*", "GTK_*", "KDE_*", "QT_*",
        "SESSION_MANAGER", "WAYLAND_DISPLAY", "XAUTHORITY", "XCURSOR_*", "XDG_*", "XMODIFIERS",
        // The network.
        "all_proxy", "ALL_PROXY", "ftp_proxy", "FTP_PROXY", "http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "no_proxy",
        "NO_PROXY", "SSL_CERT_*",
        // Libraries, and tools that developers run a program with: sanitizers, coverage, libfaketime.
        "LD_*", "SWIFT_*", "ASAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS", "LLVM_PROFILE_FILE", "FAKETIME*",
        "DONT_FAKE_MONOTONIC",
        // The agent's own variables.
        "BACKGROUND_*",
    ]

    /// - Parameter environment: the agent's environment.
    static func inherited(
        _ environment: [String: String], by app: AppRecord, in directories: AppDirectories
    ) -> [String: String] {
        let allowed = names + [directories.forbiddingVariable] + (app.variables ?? [])
        let exact = Set(allowed)
        let prefixes = allowed.filter { $0.hasSuffix("*") }.map { $0.dropLast() }
        return environment.filter { variable in
            exact.contains(variable.key) || prefixes.contains { variable.key.hasPrefix($0) }
        }
    }
}
