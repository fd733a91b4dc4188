// An app for tests and for the torture run. The app has a plain `main.swift` with registered handlers. The handlers log their
// actions to a separate file, which is synced after each line. The torture test compares this log with the ledger.
import BackgroundCommands
import BackgroundLedger
import BackgroundRuntime
import BackgroundTasks
import Foundation

BackgroundCommands.runIfAsked()
let scheduler = BGTaskScheduler.shared
let log = ProvingLog()

for number in 0..<50 {
    scheduler.register(forTaskWithIdentifier: "cycle.\(number)", using: nil) { Cycle(number: number, log: log).run($0) }
}
scheduler.register(forTaskWithIdentifier: "refresh", using: nil) { task in
    log.write("begin refresh \(type(of: task))")
    if ProcessInfo.processInfo.environment["PROVING_ENDLESS"] != nil {
        // The task runs on its queue until it expires.
        task.expirationHandler = {
            log.write("expire refresh")
            task.setTaskCompleted(success: false)
        }
        return
    }
    if let order = ProcessInfo.processInfo.environment["PROVING_CHAIN"] { return Chain(order: order, log: log).run(task) }
    task.setTaskCompleted(success: true)
}
scheduler.register(forTaskWithIdentifier: "work.main", using: .main) { task in
    MainActor.assumeIsolated { log.write("begin work.main on the main thread") }
    // The handler blocks its thread. The expiration handler must therefore run on another thread.
    let told = DispatchSemaphore(value: 0)
    task.expirationHandler = { told.signal() }
    told.wait()
    log.write("expire work.main")
    task.setTaskCompleted(success: false)
}
let provingQueue = DispatchQueue(label: "proving")
let provingKey = DispatchSpecificKey<Bool>()
provingQueue.setSpecific(key: provingKey, value: true)
scheduler.register(forTaskWithIdentifier: "work.queue", using: provingQueue) { task in
    log.write("work.queue on its queue: \(DispatchQueue.getSpecific(key: provingKey) == true)")
    task.setTaskCompleted(success: true)
}
scheduler.register(forTaskWithIdentifier: "work.none", using: nil) { task in
    log.write("work.none on the main thread: \(Thread.isMainThread)")
    task.setTaskCompleted(success: true)
}
let notices = GroundNotices(log: log)
notices.begin()
scheduler.run()
exit(GroundCommands(log: log, notices: notices).run(Array(CommandLine.arguments.dropFirst())))
