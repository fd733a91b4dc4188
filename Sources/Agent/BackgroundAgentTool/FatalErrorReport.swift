import BackgroundNotices
import ProcessSupport
import DesktopServices
import Dispatch

/// Shows an error that cannot be stored in the agent's database (ledger). Without this report, a damaged ledger would end all
/// work without a message to the user.
enum FatalErrorReport {
    /// The maximum number of seconds that a notification server may take to respond.
    private static let patience = 5.0

    /// Returns the exit code for an error. A restart cannot fix errors with the codes 65 and 78, so a user unit does not start
    /// the agent again after these codes.
    static func exitCode(for error: StoreError, of app: String) -> Int32 {
        switch error {
        case .notADatabase:
            show("\(error)", of: app)
            return 65
        case .newerVersion, .unusableFolder: return 78
        case .cannotCreate, .unsafeFolder: return 73
        case .readOnly, .busy, .diskFull, .troubled, .failed, .replaced, .unsaved: return 74
        }
    }

    /// Shows a notification. Returns after the notification is on the screen, or after the notification could not be shown.
    private static func show(_ text: String, of app: String) {
        let loop = GLibLoop(name: "desktop")
        let answered = DispatchSemaphore(value: 0)
        let presenter = DesktopPresenter(loop: loop, appName: app) { event in
            switch event {
            case .presented, .failed: answered.signal()
            case .activated, .replied, .closed, .withdrawn, .unheard, .serverIs, .serverHasButtons, .doNotDisturb, .serverAnswers,
                .serverAppeared, .serverVanished, .busLost:
                break
            }
        }
        presenter.connect()
        presenter.present(
            Notice(
                identifier: "background-agent.ledger", appName: app, desktopEntry: app, iconName: "dialog-warning",
                title: "\(app) cannot work", body: text))
        _ = answered.wait(timeout: .now() + patience)
        presenter.stop()
        loop.stop()
    }
}
