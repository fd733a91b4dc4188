// Refreshes data as Realm's example for iOS does. When the app enters the background, the app requests a launch ten seconds
// later. The launch opens the data with `downloadBeforeOpen`. The next start of the app therefore finds fresh data, even without
// a network.
import BackgroundCommands
import BackgroundScenes
import Foundation

struct RealmApp: App {
    @Environment(\.scenePhase) private var phase

    var body: some Scene {
        Worker { await showItems() }
            .onChange(of: phase) { _, phase in
                if phase == .background { scheduleRefresh() }
            }
            .backgroundTask(.appRefresh("refreshTodoRealm")) {
                guard await TodoItems.isUserLoggedIn else { return }
                // Opening the items downloads and stores them. The app does not use the returned items, so an error is ignored.
                _ = try? await TodoItems.open(downloadBeforeOpen: .always)
            }
    }
}

func scheduleRefresh() {
    let request = BGAppRefreshTaskRequest(identifier: "refreshTodoRealm")
    request.earliestBeginDate = .now.addingTimeInterval(10)
    do { try BGTaskScheduler.shared.submit(request) } catch { print("not scheduled: \(error.localizedDescription)") }
}

/// Prints the items of the server, or the stored items if the download fails. Prints an error only if the download fails and no
/// items are stored.
func showItems() async {
    do {
        let (items, source) = try await TodoItems.autoOpen()
        print("\(items.count) items, \(source):")
        for item in items { print("- \(item)") }
    } catch {
        print("no items yet: \(error.localizedDescription)")
    }
}

@main
enum Realm {
    static func main() {
        BackgroundCommands.runIfAsked()
        RealmApp.main()
    }
}
