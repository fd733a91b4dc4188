import BackgroundNotices
import ProcessSupport
import DesktopServices
import Dispatch

/// What no ledger can keep: without this a login with a damaged one would be the silent end of all work.
enum LastWords {
    /// Seconds that a notification server has for its answer.
    private static let patience = 5.0

    /// 65 and 78 are those that no other start would change: a user unit does not try again.
    static func exitCode(for error: StoreError, of app: String) -> Int32 {
        switch error {
        case .notADatabase:
            say("\(error)", of: app)
            return 65
        case .newerVersion, .unusableFolder: return 78
        case .cannotCreate, .unsafeFolder: return 73
        case .readOnly, .busy, .diskFull, .troubled, .failed, .replaced, .unsaved: return 74
        }
    }

    /// Returns when it is on the screen, or nobody could show it.
    private static func say(_ text: String, of app: String) {
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
