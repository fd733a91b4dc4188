// Zashi's way of syncing in the background: a processing task for the night, on external power and a network that costs
// nothing, stopped by its expiration handler, complete when it says so. The parts of a launch are in the order of the app
// it is modelled on: schedule the next, check the network oneself, start, say how to stop, complete.
import BackgroundCommands
import BackgroundTasks
import Foundation

let identifier = "co.example.zashi.background_sync"

@MainActor
func scheduleBackgroundSync() {
    let request = BGProcessingTaskRequest(identifier: identifier)
    request.requiresNetworkConnectivity = true
    request.requiresExternalPower = true
    // Tonight: not before three in the morning.
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
        print("the network is metered: not now")
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

// Nobody launched us: a person did, and leaves again.
scheduleBackgroundSync()
print("\(Synchronizer().height) blocks are here; the next sync is scheduled")
