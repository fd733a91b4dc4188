import BackgroundNotices
import DesktopServices
import Dispatch

/// What no ledger can keep: without this a login with a damaged one would be the silent end of all work.
enum LastWords {
    /// Seconds that a notification server has for its answer.
    private static let patience = 5.0

    /// Returns when it is on the screen, or nobody could show it.
    static func say(_ text: String, of app: String) {
        let loop = GLibLoop(name: "desktop")
        let answered = DispatchSemaphore(value: 0)
        let presenter = LibnotifyPresenter(loop: loop, appName: app) { event in
            switch event {
            case .presented, .failed: answered.signal()
            case .activated, .closed, .serverAppeared, .serverVanished, .busLost: break
            }
        }
        presenter.connect()
        presenter.present(
            Notice(
                identifier: "background-agent.ledger", appName: app, desktopEntry: app, iconName: "dialog-warning",
                title: "\(app) cannot work", body: text),
            replacing: nil)
        _ = answered.wait(timeout: .now() + patience)
        presenter.stop()
        loop.stop()
    }
}
