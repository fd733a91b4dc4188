import BackgroundCommands
import BackgroundTasks
import BackgroundTransfer
import StandInSwiftCrossUI
import UserNotifications

struct TideApp: App {
    var body: some Scene {
        WindowGroup("Tide") { Text("High at six") }
            .backgroundTask(.appRefresh("TideMorning")) {
                scheduleTide()
                await notifyOfTide()
            }
    }
}

@main
enum Tide {
    static func main() {
        BackgroundCommands.runIfAsked()
        // This line registers the actions of the scenes. No window is shown yet.
        _ = TideApp().body
        // If the agent launched this process, the process ends inside this call.
        BackgroundLaunch.run()
        scheduleTide()
        TideApp.main()
    }
}
