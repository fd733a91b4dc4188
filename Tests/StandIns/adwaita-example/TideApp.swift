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
        // Registers the actions of the scenes. No window opens.
        _ = TideApp().scene
        // If the agent launched the process, this call does the work and ends the process.
        BackgroundLaunch.run()
        scheduleTide()
        TideApp.main()
    }
}
