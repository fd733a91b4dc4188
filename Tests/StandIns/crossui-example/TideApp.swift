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
        // Registers the actions of the scenes. No window opens.
        _ = TideApp().body
        // If the agent launched the process, this call does the work and ends the process.
        BackgroundLaunch.run()
        scheduleTide()
        TideApp.main()
    }
}
