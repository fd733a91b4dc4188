import BackgroundScheduling
import DesktopServices
import Foundation
import ProcessSupport
import UserUnits

/// Starts the agent again through a systemd user manager. The manager uses the agent's socket, and a timer for the next due date.
struct UserUnitsActivator: AgentActivator {
    private let units: UserUnits
    /// The maximum number of seconds for each reply. The call blocks all other work, and a failed call is repeated later.
    private static let patience = 5
    /// The app's name that the user sees.
    private let displayName: @Sendable () -> String

    init(_ directories: AppDirectories, displayName: @escaping @Sendable () -> String) {
        let environment = ProcessInfo.processInfo.environment
        let bus = UserManagerBus(
            socket: (environment["XDG_RUNTIME_DIR"] ?? "") + "/systemd/private", patience: Self.patience)
        units = UserUnits(directories: directories, environment: environment, manager: UserManagerOnBus(bus: bus))
        self.displayName = displayName
    }

    func arm(at instant: Date?, folders: [String]) throws(ActivationFailure) {
        // A date in the far future is limited to one year, so that the agent checks at least once a year. The calendar of systemd
        // ends in 2199.
        let limit = Date(timeIntervalSinceNow: 365 * 86_400)
        do throws(UserUnits.Failure) {
            try units.demandSocket()
            try units.watch(folders, displayName: displayName())
            try units.arm(at: instant.map { min($0, limit) }, displayName: displayName())
        } catch {
            throw ActivationFailure(error.description)
        }
    }
}
