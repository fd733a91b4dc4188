// An app that does what a test or the torture run asks of it: a plain `main.swift` with registered handlers. Its handlers
// write what they do to a log of their own, synced line by line, which a judge compares with the ledger's story.
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
        // Works on its own queue until it is told to stop.
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
    // Works without ever leaving the thread: the warning has to come on another.
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
