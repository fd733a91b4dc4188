import ArgumentParser
import BackgroundCommands
import Foundation
import Stormy

/// Shows notifications of commands that were started from a menu or a file manager, without a terminal.
enum DesktopCommandNotice {
    /// Runs `body`. If `isWanted` is `true`, an error is also shown as a notification.
    static func explainingFailures(_ isWanted: Bool, _ body: () async throws -> Void) async throws {
        do {
            try await body()
        } catch let error as ExitCode {
            // An `ExitCode` error only carries an exit code, because the reason was already reported.
            throw error
        } catch {
            // If the notification cannot be shown, the error is still printed on standard error.
            if isWanted {
                try? await ActionNotification.show("A command of Stormy failed", CommandFailure(ofStormy: error).message)
            }
            throw error
        }
    }
}
