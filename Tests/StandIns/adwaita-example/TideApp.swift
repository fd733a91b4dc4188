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
        // This line registers the actions of the scenes. No window is shown yet.
        _ = TideApp().scene
        // If the agent launched this process, the process ends inside this call.
        BackgroundLaunch.run()
        scheduleTide()
        TideApp.main()
    }
}
