import ArgumentParser
import BackgroundCommands
import BackgroundRuntime
import Foundation
import ProcessSupport
import Stormy

/// What a verb says to a person who started it from a menu or a file manager: there is no terminal to read.
enum DesktopAnswer {
    /// Somebody may see a notification: there is a session bus here, or the agent was told of one. Elsewhere a notification would wait for
    /// ever, and the agent with it.
    static var hasDesktop: Bool { AppRuntime.shared.knowsDesktop || isOnDesktop }

    /// There is a session bus here.
    static var isOnDesktop: Bool {
        let environment = ThisProcess.environment
        if environment["DBUS_SESSION_BUS_ADDRESS"]?.isEmpty == false { return true }
        return environment["XDG_RUNTIME_DIR"].map { FileManager.default.fileExists(atPath: $0 + "/bus") } ?? false
    }

    /// What keeps it from doing what it was asked, in a notification, too.
    static func explainingFailures(_ isWanted: Bool, _ body: () async throws -> Void) async throws {
        do {
            try await body()
        } catch let error as ExitCode {
            // Said already.
            throw error
        } catch {
            // What cannot be shown is on standard error, as ever.
            if isWanted { try? await PersonAnswer.show("Stormy cannot do that", CommandFailure(ofStormy: error).message) }
            throw error
        }
    }
}
