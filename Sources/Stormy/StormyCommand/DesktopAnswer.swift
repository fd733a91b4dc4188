import ArgumentParser
import BackgroundCommands
import Foundation
import Stormy

/// What a verb says to a person who started it from a menu or a file manager: there is no terminal to read.
enum DesktopAnswer {
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
