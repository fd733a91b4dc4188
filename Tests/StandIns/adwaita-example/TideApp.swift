import BackgroundCommands
import BackgroundTasks
import BackgroundTransfer
import StandInAdwaita
import UserNotifications

struct TideApp: App {
    let app = AdwaitaApp(id: "org.example.tide")

    var scene: Scene {
        Window(id: "Tide") { _ in Text("High at six") }
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
        _ = TideApp().scene
        // A wake ends in here.
        BackgroundLaunch.run()
        scheduleTide()
        TideApp.main()
    }
}
