import BackgroundLedger
import BackgroundRuntime
import BackgroundTasks
import Foundation
import UserNotifications

/// The commands with which a test starts the app.
struct GroundCommands {
    let log: ProvingLog
    let notices: GroundNotices

    static let usage = """
        usage: proving-ground cycle COUNT | refresh [SECONDS] [wake] | work ID [network] [power] | export ID queue|fail STEPS | submit ID | fill COUNT | measure | fill-transfers COUNT | pick | submit-while URL FILE
               proving-ground notify ID [KEY=VALUE]... | take-off ID... | notifications | badge COUNT
        """

    /// Runs a command. Returns the exit code.
    func run(_ words: [String]) -> Int32 {
        do {
            switch words.first {
            case "cycle": try cycle(Int(words.dropFirst().first ?? "") ?? 50)
            case "refresh": try refresh(Double(words.dropFirst().first ?? ""), wakes: words.contains("wake"))
            case "work": try work(Array(words.dropFirst()))
            case "export": try export(Array(words.dropFirst()))
            case "fill": try Measurement.fill(Int(words.dropFirst().first ?? "") ?? 100_000)
            case "fill-transfers": try Measurement.fillTransfers(Int(words.dropFirst().first ?? "") ?? 100_000)
            case "pick": print("{\"pick\": \(try Measurement.pick())}")
            case "measure":
                let (submit, commit) = try Measurement.submit()
                print("{\"decision\": \(try Measurement.decision()), \"submit\": \(submit), \"commit\": \(commit)}")
            case "submit-while" where words.count == 3:
                print(try SubmitWait(url: words[1], destination: words[2]).measure())
            case "submit":
                try BGTaskScheduler.shared.submit(BGAppRefreshTaskRequest(identifier: words.dropFirst().first ?? ""))
            case "notify" where words.count > 1: try notices.add(words[1], Array(words.dropFirst(2)))
            case "take-off": notices.removeFromDesktop(Array(words.dropFirst()))
            case "notifications": notices.list()
            case "badge": UNUserNotificationCenter.current().setBadgeCount(Int(words.dropFirst().first ?? "") ?? 0)
            default:
                print(Self.usage)
                return 64
            }
            return 0
        } catch let error as BGTaskScheduler.Error {
            print("\(error.code): \(error.reason)")
            return Int32(error.code.rawValue)
        } catch {
            print("\(error)")
            return 70
        }
    }

    /// Submits requests that repeat as fast as possible.
    private func cycle(_ count: Int) throws {
        var settings = AgentSettings()
        settings.launchSpacing = 0
        settings.discretion = 0
        settings.backoffBase = 0.05
        try AppRuntime.shared.configure(settings)
        for number in 0..<count {
            try Cycle.submit("cycle.\(number)")
            log.write("submitted cycle.\(number) \(getpid())")
        }
    }

    private func refresh(_ seconds: Double?, wakes: Bool) throws {
        let request = BGAppRefreshTaskRequest(identifier: "refresh")
        request.earliestBeginDate = seconds.map { Date().addingTimeInterval($0) }
        request.wakesSystem = wakes
        try BGTaskScheduler.shared.submit(request)
    }

    private func work(_ words: [String]) throws {
        let request = BGProcessingTaskRequest(identifier: words.first ?? "")
        request.requiresNetworkConnectivity = words.contains("network")
        request.requiresExternalPower = words.contains("power")
        try BGTaskScheduler.shared.submit(request)
    }

    /// Submits an export that the user started. The desktop shows its progress. Returns when the export has ended.
    private func export(_ words: [String]) throws {
        let identifier = words.first ?? ""
        let steps = Int64(words.dropFirst(2).first ?? "") ?? 10
        let request = BGContinuedProcessingTaskRequest(
            identifier: identifier, title: "Exporting", subtitle: "\(steps) photos")
        request.strategy = words.dropFirst().first == "fail" ? .fail : .queue
        try BGTaskScheduler.shared.submit(request)
        // The handler is registered when the export begins, as in real apps.
        BGTaskScheduler.shared.register(forTaskWithIdentifier: identifier, using: nil) { [log] task in
            guard let task = task as? BGContinuedProcessingTask else { return log.write("wrong class \(type(of: task))") }
            log.write("begin \(identifier)")
            let work = Task { await Self.export(task, steps: steps, log) }
            task.expirationHandler = {
                log.write("expire \(identifier)")
                work.cancel()
            }
        }
        // This call returns when the export has ended.
        BGTaskScheduler.shared.run()
    }

    /// Exports one photo for each byte that a test writes to the pipe `PROVING_STEPS`. Without the pipe, exports all photos
    /// without a pause.
    private static func export(_ task: BGContinuedProcessingTask, steps: Int64, _ log: ProvingLog) async {
        task.progress.totalUnitCount = steps
        var goes = ProcessInfo.processInfo.environment["PROVING_STEPS"].map(bytes(of:))?.makeAsyncIterator()
        for step in 1...steps {
            if goes != nil { _ = await goes?.next() }
            guard !Task.isCancelled else {
                log.write("stopped \(task.identifier) at \(task.progress.completedUnitCount)")
                return task.setTaskCompleted(success: false)
            }
            task.progress.completedUnitCount = step
            task.updateTitle("Exporting", subtitle: "\(step) of \(steps)")
        }
        log.write("done \(task.identifier)")
        task.setTaskCompleted(success: true)
    }

    /// Returns a sequence with an element for each byte of a pipe. If the awaiting task is cancelled, the sequence ends early.
    private static func bytes(of path: String) -> AsyncStream<Void> {
        let (stream, arrived) = AsyncStream.makeStream(of: Void.self)
        Thread.detachNewThread {
            let descriptor = open(path, O_RDONLY | O_CLOEXEC)
            var byte: UInt8 = 0
            while read(descriptor, &byte, 1) == 1 { arrived.yield() }
            close(descriptor)
            arrived.finish()
        }
        return stream
    }
}
