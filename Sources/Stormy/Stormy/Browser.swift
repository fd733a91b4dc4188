import BackgroundRuntime
import Dispatch
import Foundation
import Glibc
import ProcessSupport
import Synchronization

/// Opens pages on this desktop with `xdg-open`. The browser continues to run when the caller exits.
package enum Browser {
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    /// The number of seconds to wait for the exit of the program that opens the page. If the program still runs after this time,
    /// the program is probably the browser, and the page counts as opened.
    private static let patience = 5.0

    /// - Throws: ``Failure`` if no program opens the page.
    package static func open(_ path: String) throws(Failure) {
        let environment = ThisProcess.environment
        guard let opener = CompanionProgram.findInPath("xdg-open", environment: environment) else {
            throw Failure(description: "no browser could be started, because xdg-open is not in PATH")
        }
        let hasDisplay = ["DISPLAY", "WAYLAND_DISPLAY"].contains { environment[$0]?.isEmpty == false }
        var child = ChildProcess(path: opener, arguments: [path], environment: environment)
        let nowhere = Glibc.open("/dev/null", O_RDWR | O_CLOEXEC)
        defer { close(nowhere) }
        child.standardOutput = nowhere
        // Without a display, `xdg-open` starts a browser in the terminal, and this browser needs the terminal's input.
        if !hasDisplay { child.standardInput = 0 }
        child.startsSession = hasDisplay
        // The browser is started in a separate systemd scope, because the user manager ends all processes of a service together
        // with the service.
        if hasDisplay, let scopes = CompanionProgram.findInPath("systemd-run", environment: environment),
            hasUserManager(environment)
        {
            child.path = scopes
            child.arguments = ["--user", "--scope", "--collect", "--quiet", "--", opener, path]
        }
        let code: Int32?
        do { code = try end(of: child, within: hasDisplay ? patience : nil) } catch {
            throw Failure(description: "no browser could be started: \(error)")
        }
        guard code ?? 0 == 0 else { throw Failure(description: "no browser could be started by xdg-open") }
    }

    private static func hasUserManager(_ environment: [String: String]) -> Bool {
        environment["XDG_RUNTIME_DIR"].map { access($0 + "/systemd/private", F_OK) == 0 } ?? false
    }

    /// - Returns: the exit code, or `nil` if the program still runs.
    private static func end(of child: ChildProcess, within seconds: Double?) throws(ChildProcess.Failure) -> Int32? {
        let pid = try child.start()
        guard let seconds else { return ChildProcess.wait(for: pid) }
        let code = ExitCode()
        DispatchQueue.global().async {
            code.set(ChildProcess.wait(for: pid))
        }
        return code.wait(seconds)
    }

    private final class ExitCode: Sendable {
        private let value = Mutex<Int32?>(nil)
        private let isKnown = DispatchSemaphore(value: 0)

        func set(_ code: Int32) {
            value.withLock { $0 = code }
            isKnown.signal()
        }

        func wait(_ seconds: Double) -> Int32? {
            _ = isKnown.wait(timeout: .now() + seconds)
            return value.withLock { $0 }
        }
    }
}
