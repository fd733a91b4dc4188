import Spool
import BackgroundLedger
import BackgroundScheduling
import BackgroundTasksTesting
import Foundation
import ProcessSupport
import Synchronization
import TransferMachines

/// An app whose processes submit, await, hand over, notify and acknowledge like real apps. Random numbers decide when a process
/// crashes or hangs.
final class SimulatedApp: LedgerProgram, @unchecked Sendable {  // because the simulation has one thread
    /// The promises to the app, which the simulation checks at the end.
    struct Memory {
        /// The tokens of requests that `submit` accepted and that were not cancelled later.
        var accepted: [String: String] = [:]
        /// For each transfer: the photo that was queued and not cancelled.
        var photos: [Int64: Data] = [:]
        /// For each transfer: the name of the downloaded file.
        var files: [Int64: String] = [:]
        var cancelled: Set<Int64> = []
        /// For each transfer: the number of launches that handled its event and completed.
        var handled: [Int64: Int] = [:]
        /// The photos that the app uploads in a second way. Each launch reads the tasks of the session, and begins the uploads
        /// that have no task.
        var wanted: [String: WantedPhoto] = [:]
        /// The photos for which the delegate has received the result of the upload.
        var heard: Set<String> = []
        /// The identifiers of the notifications that the app requested.
        var told: Set<String> = []
        var broken: [String] = []
    }

    struct WantedPhoto {
        let bytes: Data
        let method: UploadKind
        let name: String
    }

    unowned let machine: SimulatedHost
    var host: SimulatedHost { machine }
    let dice: Dice
    var memory = Memory()
    /// `true` after the time from which processes no longer crash or hang.
    var isCalm = false
    /// `true` if the configuration has a mistake. All processes then end immediately.
    var isMisconfigured = false
    /// The photos that a ledger from a backup did not contain, or listed as unsent. A server may have received one of these
    /// photos twice.
    private(set) var sentAgain: Set<Data> = []
    private var hasOldLedger = false
    private var storms = 0
    /// The processes that had to stop waiting for a response, because their time was up. A process that stopped waiting does not
    /// receive the response.
    private var handedOver: Set<ProcessIdentity> = []

    init(_ machine: SimulatedHost, _ dice: Dice) { (self.machine, self.dice) = (machine, dice) }

    private var now: Date { machine.clock.date }

    // MARK: Processes

    func begin(_ process: VirtualProcess) {
        later(dice.between(0.01, 0.2), process) { [self] in
            let launch = write { try $0.launch(process.launch) }
            guard let launch, launch.endedAt == nil else { return process.exit(.exited(74)) }
            if crashes(process) { return }
            if isMisconfigured { return process.exit(.exited(78)) }
            uploadMissingPhotos()
            switch launch.kind {
            case .appRefresh: refresh(process, launch)
            case .processing: later(dice.between(0.5, isCalm ? 60 : 900), process) { [self] in finish(process, .completed) }
            case .urlSession: deliver(process, launch)
            case .notificationResponse: respond(process, launch)
            case .continuedProcessing, .significantTimeChange: finish(process, .completed)
            }
        }
    }

    private func crashes(_ process: VirtualProcess, _ probability: Double = 0.07) -> Bool {
        guard !isCalm, dice.chance(probability) else { return false }
        machine.log("launch \(process.launch) crashes")
        process.exit(.signalled(11))
        return true
    }

    func warned(_ process: VirtualProcess) {
        if !isCalm, dice.chance(0.15) { return machine.log("launch \(process.launch) does not listen") }
        later(dice.between(0.001, 0.5), process) { [self] in
            handedOver.insert(process.identity)
            write { try $0.handOver(process: process.identity, now: now, taking: { dice.chance(0.8) }) }
            later(dice.between(0.001, 1), process) { [self] in finish(process, .expired) }
        }
    }

    func died(_ process: VirtualProcess) {
        guard !isCalm, dice.chance(0.3) else { return }
        // The launch forked another process, which stores a result after the launch has ended. The late result must not be used.
        machine.clock.schedule(after: dice.between(0, 20)) { [self] in
            let over = write { try $0.launch(process.launch)?.endedAt } != nil
            if over { write { try $0.setResult(.completed, detail: "late", ofLaunch: process.launch) } }
        }
    }

    /// Stores the result durably, and then ends the process. The process may be killed between the two steps.
    private func finish(_ process: VirtualProcess, _ result: LaunchOutcome, _ also: (LedgerTransaction) throws -> Void = { _ in })
    {
        write { transaction in
            if result == .completed { try also(transaction) }
            try transaction.setResult(result, detail: nil, ofLaunch: process.launch)
        }
        later(dice.between(0, 0.05), process) { process.exit() }
    }

    /// Completes all running launches with this identifier.
    func finishAll(of identifier: String) throws {
        let live = try machine.ledger.read { try $0.liveLaunches().filter { $0.identifier == identifier }.compactMap(\.id) }
        for launch in live {
            write { try $0.setResult(.completed, detail: nil, ofLaunch: launch) }
            machine.endProcess(of: launch)
        }
        try machine.run()
    }

    // MARK: Actions

    private func refresh(_ process: VirtualProcess, _ launch: LaunchRecord) {
        if launch.identifier == "once", dice.chance(0.6) { submitOnce(after: dice.between(60, 40_000), in: process.launch) }
        if crashes(process, 0.04) { return }
        let transfer = write {
            try $0.awaitWeather(from: SimulatedServer.origin + "/weather", process: process.identity, now: now)
        }
        look(process, transfer)
    }

    private func look(_ process: VirtualProcess, _ id: Int64) {
        later(1, process) { [self] in
            if handedOver.contains(process.identity) { return }
            // If no agent is running, a waiting process starts one.
            if !machine.hasAgent { try? machine.startAgent() }
            let transfer = write { try $0.transfer(id) }
            guard let transfer, transfer.state.isTerminal else {
                if transfer == nil { return finish(process, .failed) }
                return look(process, id)
            }
            if transfer.state == .completed { checkWeather(transfer) }
            write { try $0.stopAwaiting(process: process.identity, now: now) }
            if transfer.state == .completed, dice.chance(0.7) { tell("storm-\(storms / 2)") }
            storms += 1
            if crashes(process, 0.05) { return }
            finish(process, transfer.state == .completed ? .completed : .failed)
        }
    }

    private func tell(_ identifier: String) {
        memory.told.insert(identifier)
        let content = NotificationContent(
            title: "Storm", subtitle: "", body: identifier, categoryIdentifier: "", threadIdentifier: "", userInfo: "",
            sound: nil, interruptionLevel: 1, badge: nil)
        write { try $0.addNotification(identifier, content, dueAt: nil, oncePerContent: true, now: now) }
    }

    private func deliver(_ process: VirtualProcess, _ launch: LaunchRecord) {
        let events = write { transaction in
            try transaction.claimAllEvents(
                session: launch.identifier, process: process.identity, isAlive: { [machine] in machine.isAlive($0) })
        }
        let transfers = events.compactMap { event in write { try $0.transfer(event.transfer) } }
        let keys = transfers.compactMap(\.taskDescription)
        for transfer in transfers { check(transfer) }
        later(dice.between(0.05, 4), process) { [self] in
            if crashes(process) { return }
            for event in events { memory.handled[event.transfer, default: 0] += 1 }
            memory.heard.formUnion(keys)
            let now = now
            finish(process, .completed) { transaction in
                for event in events { try transaction.eventWasDelivered(event.id!, now: now) }
            }
        }
    }

    private func respond(_ process: VirtualProcess, _ launch: LaunchRecord) {
        let responses = write { try $0.undeliveredResponses().filter { $0.notification == launch.identifier } }
        later(dice.between(0.05, 4), process) { [self] in
            if crashes(process) { return }
            let now = now
            finish(process, .completed) { transaction in
                for response in responses { try transaction.responseWasDelivered(response.id!, now: now) }
            }
        }
    }

    // MARK: Submissions

    func submitOnce(after seconds: Double, in launch: Int64? = nil) {
        submit(RequestRecord(identifier: "once", kind: .appRefresh, earliestBegin: now + seconds, submittedAt: now), launch)
    }

    func submit(_ request: RequestRecord, _ launch: Int64? = nil) {
        let (now, zone) = (now, machine.clock.timeZone)
        write { transaction in
            // The new request replaces the old request, so the simulation expects only the new request to run.
            if let old = try transaction.request(request.identifier) { memory.accepted[old.token] = nil }
            try transaction.submit(request, in: launch, now: now, zone: zone)
        }
        memory.accepted[request.token] = request.identifier
    }

    func retract(_ identifier: String) {
        write { transaction in
            if let old = try transaction.request(identifier) { memory.accepted[old.token] = nil }
            try transaction.deleteRequest(identifier)
        }
    }

    func download(_ name: String) {
        let id = write { transaction -> Int64 in
            var record = TransferRecord(
                session: "files", key: "file-\(name)-\(now.timeIntervalSince1970)", kind: .download, method: "GET",
                url: SimulatedServer.origin + "/file/" + name, headers: [], now: now)
            _ = record.handle(.adopted(suspended: false))
            record.idleTimeout = 20
            return try transaction.insert(record).id!
        }
        memory.files[id] = name
    }

    func want(_ photo: Data, _ method: UploadKind, name: String) {
        memory.wanted["wanted-\(memory.wanted.count)-\(name)"] = WantedPhoto(bytes: photo, method: method, name: name)
    }

    /// Begins the uploads that `session.tasks` does not contain. `session.tasks` contains transfers that have not ended, and
    /// ended transfers whose result was not delivered.
    private func uploadMissingPhotos() {
        let missing = memory.wanted.keys.filter { !memory.heard.contains($0) }.sorted()
        guard !missing.isEmpty else { return }
        let listed = write { transaction in
            let ended = try transaction.untakenEnds(session: "photos").map { $0.transfer }
            return Set((try transaction.unfinishedTransfers(session: "photos") + ended).compactMap(\.taskDescription))
        }
        for key in missing where !listed.contains(key) {
            guard let photo = memory.wanted[key] else { continue }
            machine.log("the app begins \(key), which it does not find")
            upload(photo.bytes, photo.method, name: photo.name, description: key)
        }
    }

    func upload(_ photo: Data, _ method: UploadKind, name: String, description: String? = nil) {
        let place = [UploadKind.webdav: "/dav", .tus: "/files", .resumable: "/resumable"][method]!
        let id = writeCopy(of: photo) { transaction, taken -> Int64 in
            var record = TransferRecord(
                session: "photos", key: taken.name, kind: .upload, method: "PUT", url: SimulatedServer.origin + place,
                headers: [],
                now: now)
            _ = record.handle(.adopted(suspended: false))
            record.idleTimeout = 20
            record.taskDescription = description
            record.bodyFile = taken.name
            record.bytesTotal = taken.byteCount
            record.sourceSHA256 = taken.sha256
            var order = UploadOrder(method: method, fileName: name, byteCount: taken.byteCount, token: taken.name)
            order.contentType = "image/jpeg"
            record.upload = order
            return try transaction.insert(record).id!
        }
        memory.photos[id] = photo
    }

    /// Restores the record of promises to the time of the backup. Uploads again the photos that were queued after the backup.
    /// Photos whose upload was cancelled are not uploaded again.
    func ledgerCameBack(_ then: Memory) {
        hasOldLedger = true
        let lost = memory.photos.filter { then.photos[$0.key] != $0.value && !memory.cancelled.contains($0.key) }
        let shown = memory.told.intersection(then.told)
        let broken = memory.broken
        memory = then
        (memory.told, memory.broken) = (shown, broken)
        sentAgain.formUnion(then.photos.values)
        for (_, photo) in lost.sorted(by: { $0.key < $1.key }) {
            sentAgain.insert(photo)
            upload(photo, .webdav, name: "again-\(photo.count).jpg")
        }
    }

    func cancel(_ id: Int64) {
        let now = now
        write { transaction in
            guard try transaction.handle(.cancelled(message: nil, now: now), transfer: id, now: now) else { return }
            memory.cancelled.insert(id)
        }
    }

    // MARK: Checks

    private func checkWeather(_ transfer: TransferRecord) {
        let file = transfer.wholeFile(in: machine.directories.spool)
        let text = file.flatMap { try? String(contentsOf: $0, encoding: .utf8) }
        if text != SimulatedServer.forecast { memory.broken.append("an awaited answer is not what the server sent") }
    }

    /// Returns the digests of all versions of a file. A delivered file must be one complete version.
    var digests: (String) -> Set<String> = { _ in [] }

    private func check(_ transfer: TransferRecord) {
        guard let id = transfer.id, let name = memory.files[id], transfer.state == .completed else { return }
        guard let file = transfer.wholeFile(in: machine.directories.spool),
            let found = try? FileDigest.sha256(of: file)
        else {
            // If the ledger comes from a backup, it may list a delivered file as undelivered. The spool then no longer contains
            // the delivered file.
            if !hasOldLedger { memory.broken.append("download \(id) is completed and its file is not there") }
            return
        }
        if !digests(name).contains(found.digest) {
            memory.broken.append("download \(id) of \(name) is no version that the server ever had")
        }
        if found.digest != transfer.sha256 { memory.broken.append("download \(id): the digest written down is not the file's") }
    }
}
