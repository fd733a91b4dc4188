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
        // The actions of the scenes are known from here on; nothing is shown yet.
        _ = TideApp().body
        // A wake ends in here.
        BackgroundLaunch.run()
        scheduleTide()
        TideApp.main()
    }
}
