// Synchronizes in the background as the iOS app Zashi does: a processing task at night, with external power and an unmetered
// network. The expiration handler stops the task. A launch schedules the next task, checks the network, starts the work, sets the
// expiration handler, and completes the task, as in Zashi.
import BackgroundCommands
import BackgroundTasks
import Foundation

let identifier = "co.example.zashi.background_sync"

@MainActor
func scheduleBackgroundSync() {
    let request = BGProcessingTaskRequest(identifier: identifier)
    request.requiresNetworkConnectivity = true
    request.requiresExternalPower = true
    // The task runs at three in the morning or later.
    request.earliestBeginDate = Calendar.current.nextDate(
        after: Date(), matching: DateComponents(hour: 3), matchingPolicy: .nextTime)
    do {
        try BGTaskScheduler.shared.submit(request)
    } catch {
        print("not scheduled: \(error.localizedDescription)")
    }
}

@MainActor
func handleBackgroundSync(_ task: BGProcessingTask) {
    scheduleBackgroundSync()
    guard NetworkPath.current?.isMetered == false else {
        print("the network is metered, so the sync does not run now")
        return task.setTaskCompleted(success: false)
    }
    let synchronizer = Synchronizer()
    let work = Task {
        let isUpToDate = await synchronizer.run()
        task.setTaskCompleted(success: isUpToDate)
    }
    task.expirationHandler = { work.cancel() }
}

BackgroundCommands.runIfAsked()
BGTaskScheduler.shared.register(forTaskWithIdentifier: identifier, using: .main) { task in
    MainActor.assumeIsolated { handleBackgroundSync(task as! BGProcessingTask) }
}
BGTaskScheduler.shared.run()

// The program reaches this line only if the user started the app. If the agent launched the app, `run()` does not return.
scheduleBackgroundSync()
print("\(Synchronizer().height) blocks are synchronized; the next sync is scheduled")
