// The app of the WWDC22 session "Efficiency awaits: Background tasks in SwiftUI" in its original form. The import was changed
// from SwiftUI to BackgroundScenes. Code that the session mentions but does not show was added (ContentView, the URL, the
// decoding).
import BackgroundScenes

struct SampleStormyApp: App {
    var body: some Scene {
        WindowGroup {
            ContentView()
        }
        .backgroundTask(.appRefresh("StormyNoon")) {
            await scheduleAppRefresh()
            if await isStormy() {
                await notifyUserForPhoto()
            }
        }
        .backgroundTask(.urlSession("isStormy")) {
            // ...
        }
    }
}

struct ContentView: View {
    var body: some View {
        Text("Is it stormy?")
    }
}

func scheduleAppRefresh() async {
    let today = Calendar.current.startOfDay(for: .now)
    let tomorrow = Calendar.current.date(byAdding: .day, value: 1, to: today)!
    let noonComponent = DateComponents(hour: 12)
    let noon = Calendar.current.date(byAdding: noonComponent, to: tomorrow)

    let request = BGAppRefreshTaskRequest(identifier: "StormyNoon")
    request.earliestBeginDate = noon
    try? BGTaskScheduler.shared.submit(request)
}

func isStormy() async -> Bool {
    let config = URLSessionConfiguration.background(withIdentifier: "isStormy")
    config.sessionSendsLaunchEvents = true
    let session = URLSession(configuration: config)

    let request = URLRequest(url: URL(string: "http://127.0.0.1:1/weather")!)

    let response = await withTaskCancellationHandler {
        try? await session.data(for: request)
    } onCancel: {
        let task = session.downloadTask(with: request)
        task.resume()
    }
    return response.map { String(decoding: $0.0, as: UTF8.self) } == "stormy"
}

func notifyUserForPhoto() async {
    let content = UNMutableNotificationContent()
    content.title = "It is stormy"
    content.body = "Take a photo"
    let request = UNNotificationRequest(identifier: UUID().uuidString, content: content, trigger: nil)
    try? await UNUserNotificationCenter.current().add(request)
}
