import Spool
import BackgroundLedger
import BackgroundScheduling
import BackgroundTasksTesting
import ServerScripts
import Foundation
import TransferMachines

/// A state that work can have.
package enum MatrixState: String, CaseIterable, Sendable {
    case checkWaitsForNoon = "a check waits for noon"
    case checkIsAsking = "a check waits for the weather service"
    case checkHandedOver = "the agent continues the download of a check"
    case answerIsBeingDelivered = "a response is being delivered"
    case downloadIsQueued = "a download was just requested"
    case downloadIsRunning = "half of a download is stored"
    case downloadIsWaiting = "a download waits for its next attempt"
    case downloadIsPaused = "a download is paused"
    case uploadIsQueued = "an upload was just requested"
    case uploadIsRunning = "half of an upload is sent"
    case uploadAwaitsItsAnswer = "an upload is complete on the server and its last request is running"
    case uploadIsWaiting = "an upload waits for its next attempt"
    case noticeIsPending = "a notification waits for its time"
    case noticeIsBeingShown = "a notification is sent to its server"
    case noticeStands = "a notification is on the screen"
    case noticeWasPressed = "a button was pressed and the press is being delivered to the app"
}

/// An event that can happen in a state.
package enum MatrixCause: String, CaseIterable, Sendable {
    case nothing = "nothing happens"
    case timeRunsOut = "the launch reaches its time limit"
    case personCancels = "the user cancels"
    case appIsTerminated = "SIGTERM to the app"
    case appIsKilled = "kill -9 of the app"
    case agentIsKilled = "kill -9 of the agent"
    case bothAreKilled = "kill -9 of the app and the agent"
    case networkIsCut = "the network is cut"
    case serverIsGone = "the server is not reachable"
    case serverChangesTheFile = "the server changes the file"
    case diskIsFull = "the disk is full"
    case clockIsSteppedForward = "the clock is set forward"
    case clockIsSteppedBack = "the clock is set back"
    case zoneChanges = "the time zone changes"
    case machineSleeps = "the machine sleeps"
    case notificationServerIsGone = "no notification server runs"
    case logout = "the user logs out"
}

/// A small app for one cell of the matrix. The app handles each launch in known steps with known pauses.
final class MatrixApp: LedgerProgram, @unchecked Sendable {  // because the simulation has one thread
    unowned var machine: SimulatedHost!
    var host: SimulatedHost { machine }
    /// The number of button presses that a launch delivered.
    private(set) var responses = 0
    /// The number of seconds that a delivery takes.
    var deliverySeconds = 0.1
    /// For each delivery: the digest of the file, or the state of the transfer if the transfer has no file.
    private(set) var deliveries: [String] = []

    func begin(_ process: VirtualProcess) {
        later(0.05, process) { [self] in
            guard let launch = write({ try $0.launch(process.launch) }), launch.endedAt == nil else {
                return process.exit(.exited(74))
            }
            switch launch.kind {
            case .appRefresh: check(process)
            case .urlSession: later(deliverySeconds, process) { [self] in deliver(process, launch) }
            case .notificationResponse: later(deliverySeconds, process) { [self] in respond(process, launch) }
            case .processing, .continuedProcessing, .significantTimeChange: finish(process, .completed)
            }
        }
    }

    func warned(_ process: VirtualProcess) {
        later(0.1, process) { [self] in
            let now = machine.clock.date
            write { try $0.handOver(process: process.identity, now: now) }
            finish(process, .expired)
        }
    }

    func died(_ process: VirtualProcess) {}

    private func finish(_ process: VirtualProcess, _ result: LaunchOutcome) {
        write { try $0.setResult(result, detail: nil, ofLaunch: process.launch) }
        process.exit()
    }

    private func check(_ process: VirtualProcess) {
        let now = machine.clock.date
        let id = write { try $0.awaitWeather(from: MatrixCell.origin + "/weather", process: process.identity, now: now) }
        look(process, id)
    }

    private func look(_ process: VirtualProcess, _ id: Int64) {
        later(0.5, process) { [self] in
            if !machine.hasAgent { try? machine.startAgent() }
            guard let transfer = write({ try $0.transfer(id) }), transfer.state.isTerminal else { return look(process, id) }
            let now = machine.clock.date
            write { try $0.stopAwaiting(process: process.identity, now: now) }
            if transfer.state == .completed { tell() }
            finish(process, transfer.state == .completed ? .completed : .failed)
        }
    }

    func tell(dueAt: Date? = nil) {
        let content = NotificationContent(
            title: "Storm", subtitle: "", body: "", categoryIdentifier: "", threadIdentifier: "", userInfo: "", sound: nil,
            interruptionLevel: 1, badge: nil)
        let now = machine.clock.date
        write { try $0.addNotification("storm", content, dueAt: dueAt, oncePerContent: true, now: now) }
    }

    private func deliver(_ process: VirtualProcess, _ launch: LaunchRecord) {
        let now = machine.clock.date
        let ended = write { transaction -> [TransferRecord] in
            let events = try transaction.claimAllEvents(
                session: launch.identifier, process: process.identity, isAlive: { [machine] in machine!.isAlive($0) })
            for event in events { try transaction.eventWasDelivered(event.id!, now: now) }
            try transaction.setResult(.completed, detail: nil, ofLaunch: process.launch)
            return try events.compactMap { try transaction.transfer($0.transfer) }
        }
        deliveries += ended.map { transfer in
            let file = transfer.wholeFile(in: machine.directories.spool)
            return file.flatMap { try? FileDigest.sha256(of: $0).digest } ?? transfer.state.rawValue
        }
        if launch.identifier == "weather", ended.contains(where: { $0.state == .completed }) { tell() }
        process.exit()
    }

    private func respond(_ process: VirtualProcess, _ launch: LaunchRecord) {
        let now = machine.clock.date
        write { transaction in
            for response in try transaction.undeliveredResponses() where response.notification == launch.identifier {
                try transaction.responseWasDelivered(response.id!, now: now)
                responses += 1
            }
            try transaction.setResult(.completed, detail: nil, ofLaunch: process.launch)
        }
        process.exit()
    }
}
