import BackgroundLedger
import ProcessSupport

/// The environment variables that a launch inherits from its agent. The agent has the variables of the terminal or the login that
/// started it. Some of these variables contain secrets, so a launch does not inherit all variables.
enum LaunchEnvironment {
    /// The names of the variables. A `*` at the end matches any rest of a name. The page `WithoutSystemd.md` also lists these
    /// names.
    static let names: [String] = [
        // Variables about the user.
        "HOME", "LOGNAME", "PATH", "SHELL", "TMPDIR", "USER",
        // Variables about the language and the time.
        "LANG", "LANGUAGE", "LC_*", "LOCALE_ARCHIVE", "TZ", "TZDIR",
        // Variables about the desktop, and about libraries that draw on it.
        "BROWSER", "DBUS_*", "DESKTOP_*", "DISPLAY", "GDK_*", "GIO_*", "GNOME_*", "GSETTINGS_*", "GTK_*", "KDE_*", "QT_*",
        "SESSION_MANAGER", "WAYLAND_DISPLAY", "XAUTHORITY", "XCURSOR_*", "XDG_*", "XMODIFIERS",
        // Variables about the network.
        "all_proxy", "ALL_PROXY", "ftp_proxy", "FTP_PROXY", "http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "no_proxy",
        "NO_PROXY", "SSL_CERT_*",
        // Variables of libraries and of developer tools: sanitizers, coverage and libfaketime.
        "LD_*", "SWIFT_*", "ASAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS", "LLVM_PROFILE_FILE", "FAKETIME*",
        "DONT_FAKE_MONOTONIC",
        // Variables of the agent.
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
