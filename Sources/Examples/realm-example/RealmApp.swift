// Realm's way of refreshing: when the app leaves the foreground it asks to be woken ten seconds later, and then opens its
// data with a download first, so that whoever opens the app next, offline perhaps, finds it fresh.
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
                // Nothing is written in here: opening downloads.
                _ = try? await TodoItems.open(downloadBeforeOpen: .always)
            }
    }
}

func scheduleRefresh() {
    let request = BGAppRefreshTaskRequest(identifier: "refreshTodoRealm")
    request.earliestBeginDate = .now.addingTimeInterval(10)
    do { try BGTaskScheduler.shared.submit(request) } catch { print("not scheduled: \(error.localizedDescription)") }
}

/// Remote first; on any failure what is here, and only without that an error.
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
