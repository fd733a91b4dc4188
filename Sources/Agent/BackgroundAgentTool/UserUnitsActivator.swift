import BackgroundScheduling
import DesktopServices
import Foundation
import ProcessSupport
import UserUnits

/// A systemd user manager that starts the agent again: by its socket, and by a timer for the next moment.
struct UserUnitsActivator: AgentActivator {
    private let units: UserUnits
    /// Seconds for each answer: nothing else is done meanwhile, and it is asked again later.
    private static let patience = 5
    /// What a person calls the app.
    private let displayName: @Sendable () -> String

    init(_ directories: AppDirectories, displayName: @escaping @Sendable () -> String) {
        let environment = ProcessInfo.processInfo.environment
        let bus = UserManagerBus(
            socket: (environment["XDG_RUNTIME_DIR"] ?? "") + "/systemd/private", patience: Self.patience)
        units = UserUnits(directories: directories, environment: environment, manager: UserManagerOnBus(bus: bus))
        self.displayName = displayName
    }

    func arm(at instant: Date?) throws(ActivationFailure) {
        // A request of the far future: the agent looks once a year, and a calendar ends in 2199.
        let limit = Date(timeIntervalSinceNow: 365 * 86_400)
        do throws(UserUnits.Failure) {
            try units.demandSocket()
            try units.arm(at: instant.map { min($0, limit) }, displayName: displayName())
        } catch {
            throw ActivationFailure(error.description)
        }
    }
}
