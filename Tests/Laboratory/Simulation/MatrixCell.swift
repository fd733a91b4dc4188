import Spool
import BackgroundLedger
import BackgroundScheduling
import BackgroundTasksTesting
import ServerScripts
import Foundation
import TransferMachines

/// One cell of the matrix: a kind of work in a state, an event that happens in this state, and the visible result.
package struct MatrixCell: Sendable {
    static let origin = "http://server.test"
    private static let weather = "{\"storm\":\"" + String(repeating: "thunder ", count: 500) + "\"}"
    private static let size = 2_000_000
    private static let versions = [0, 1].map { Payload.pattern(20_000_000).slice($0 * 7_000_003..<$0 * 7_000_003 + size) }
    private static let digests = versions.map { FileDigest.sha256(of: $0.data) }
    private static let photo = Payload.pattern(30_000_000).slice(25_000_000..<25_600_000).data

    package let state: MatrixState
    package let cause: MatrixCause

    package init(_ state: MatrixState, _ cause: MatrixCause) { (self.state, self.cause) = (state, cause) }

    /// The promised result. If ``MatrixPromises`` contains no exception for the cell, the result is the same as without the
    /// event.
    package var promised: String {
        MatrixPromises.exceptions[state]?[cause] ?? MatrixPromises.usual[state] ?? "?"
    }

    /// `true` if the cause ends a process of the app, but no process is running in this state. A cause that ends a process then
    /// has no effect.
    package var findsNobody: Bool {
        [.timeRunsOut, .appIsTerminated, .appIsKilled].contains(cause)
            && ![.checkIsAsking, .answerIsBeingDelivered, .noticeWasPressed].contains(state)
    }

    /// Simulates the cell, and returns the visible result. One cell takes some hundredths of a second of real time.
    package func play() throws -> String {
        let app = MatrixApp()
        let machine = try SimulatedHost(
            start: Date(timeIntervalSince1970: 1_749_542_400), zone: TimeZone(identifier: "Europe/Berlin")!, program: app,
            random: { 0.5 })
        app.machine = machine
        let table = try Table(machine, app)
        try table.begin(state)
        guard try findsNobody == false || machine.ledger.read({ try $0.liveLaunches().isEmpty }) else { throw OtherAgentFound() }
        try table.happen(cause, state)
        try table.end()
        return try table.seen(state)
    }

    private struct OtherAgentFound: Error {}

    /// The host and the server of one cell, with the actions that change them.
    private final class Table {
        let machine: SimulatedHost
        let app: MatrixApp
        let dav: DavStore

        init(_ machine: SimulatedHost, _ app: MatrixApp) throws {
            (self.machine, self.app) = (machine, app)
            dav = try DavStore(directory: machine.directories.state.appendingPathComponent("dav"))
            machine.network.bytesPerSecond = 1_000_000
            let server = machine.network.server(origin)
            server.mount(dav)
            server.route("GET", "/file", .file(versions[0], etag: "\"v0\""))
            server.route("GET", "/weather", .dripping(weather, seconds: 10))
        }

        private var now: Date { machine.clock.date }

        // MARK: Work

        func begin(_ state: MatrixState) throws {
            switch state {
            case .checkWaitsForNoon:
                let made = RequestRecord(
                    identifier: "noon", kind: .appRefresh, earliestBegin: nil, recurrence: .daily(.noon), submittedAt: now)
                let (now, zone) = (now, machine.clock.timeZone)
                app.write { _ = try $0.submit(made, now: now, zone: zone) }
            case .checkIsAsking: try ask()
            case .checkHandedOver:
                try ask()
                try question(.simulateExpire, "once")
                try machine.pass(1)
            case .answerIsBeingDelivered:
                app.deliverySeconds = 5
                app.write { transaction in
                    var record = download("/weather", key: "weather", session: "weather")
                    _ = record.handle(.adopted(suspended: false))
                    _ = try transaction.insert(record)
                }
                try machine.pass(12)
            case .downloadIsQueued: add(download())
            case .downloadIsRunning:
                add(download())
                try machine.pass(1.2)
            case .downloadIsWaiting:
                machine.network.server(origin).route(
                    "GET", "/file", .status(503, headers: ["Retry-After": "60"]), .file(versions[0], etag: "\"v0\""))
                add(download())
                try machine.pass(1)
            case .downloadIsPaused:
                add(download())
                try machine.pass(1.2)
                change(.paused)
                try machine.run()
            case .uploadIsQueued: upload()
            case .uploadIsRunning:
                upload()
                try machine.pass(0.35)
            case .uploadAwaitsItsAnswer:
                upload()
                try machine.pass(0.35)
                // The next request takes a long time.
                machine.network.latency = 5
                try machine.pass(1)
            case .uploadIsWaiting:
                dav.refuse(status: 503, headers: ["Retry-After": "60"])
                upload()
                try machine.pass(1)
            case .noticeIsPending: app.tell(dueAt: now + 600)
            case .noticeIsBeingShown:
                machine.desktop.answer(after: 2)
                app.tell()
                try machine.pass(1)
            case .noticeStands:
                app.tell()
                try machine.pass(1)
            case .noticeWasPressed:
                app.deliverySeconds = 5
                app.tell()
                try machine.pass(1)
                machine.desktop.press(on: "storm")
                try machine.pass(1)
            }
            try machine.run()
            guard try isReached(state) else { throw NotReached(state: state) }
        }

        private struct NotReached: Error { let state: MatrixState }

        /// Returns whether the work has reached the state.
        private func isReached(_ state: MatrixState) throws -> Bool {
            try machine.ledger.read { transaction in
                let transfer = try transaction.transfers().first
                let notice = try transaction.notifications().first
                let live = try transaction.liveLaunches().map(\.kind)
                return switch state {
                case .checkWaitsForNoon: try !transaction.requests().isEmpty && live.isEmpty
                case .checkIsAsking: live == [.appRefresh] && transfer?.state == .running
                case .checkHandedOver: live.isEmpty && transfer?.state == .running && transfer?.isAdopted == true
                case .answerIsBeingDelivered: live == [.urlSession]
                case .downloadIsQueued, .uploadIsQueued: transfer?.state == .running && transfer?.bytesDone == 0
                case .downloadIsRunning: transfer?.state == .running && (transfer?.bytesDone ?? 0) > 500_000
                case .downloadIsWaiting, .uploadIsWaiting: transfer?.state == .waiting
                case .downloadIsPaused: transfer?.state == .paused && (transfer?.bytesDone ?? 0) > 500_000
                case .uploadIsRunning: transfer?.state == .running && (1..<600_000).contains(transfer?.bytesDone ?? 0)
                case .uploadAwaitsItsAnswer: transfer?.state == .running && transfer?.bytesDone == 600_000
                case .noticeIsPending: notice?.state == .pending
                case .noticeIsBeingShown: notice?.state == .presenting
                case .noticeStands: notice?.state == .delivered
                case .noticeWasPressed: live == [.notificationResponse]
                }
            }
        }

        private func ask() throws {
            app.write { try $0.save(RequestRecord(identifier: "once", kind: .appRefresh, earliestBegin: nil, submittedAt: now)) }
            try machine.pass(4)
        }

        private func download(_ path: String = "/file", key: String = "file", session: String = "files") -> TransferRecord {
            var record = TransferRecord(
                session: session, key: key, kind: .download, method: "GET", url: origin + path, headers: [], now: now)
            _ = record.handle(.adopted(suspended: false))
            return record
        }

        private func add(_ transfer: TransferRecord) { app.write { _ = try $0.insert(transfer) } }

        private func change(_ event: TransferLife.Event) {
            app.write { transaction in
                for var transfer in try transaction.unfinishedTransfers() { try transaction.handle(event, &transfer, now: now) }
            }
        }

        private func upload() {
            app.writeCopy(of: photo) { transaction, taken in
                var record = TransferRecord(
                    session: "photos", key: taken.name, kind: .upload, method: "PUT", url: origin + "/dav", headers: [], now: now)
                _ = record.handle(.adopted(suspended: false))
                (record.bodyFile, record.bytesTotal, record.sourceSHA256) = (taken.name, taken.byteCount, taken.sha256)
                record.upload = UploadOrder(
                    method: .webdav, fileName: "storm.jpg", byteCount: taken.byteCount, token: taken.name)
                _ = try transaction.insert(record)
            }
        }

        private func question(_ verb: ControlRecord.Verb, _ argument: String) throws {
            app.write { _ = try $0.addControl(verb, argument, now: now) }
            try machine.run()
        }

        // MARK: Causes

        func happen(_ cause: MatrixCause, _ state: MatrixState) throws {
            switch cause {
            case .nothing: break
            case .timeRunsOut:
                for launch in try machine.ledger.read({ try $0.liveLaunches() }) {
                    try question(.simulateExpire, launch.identifier)
                }
            case .personCancels:
                change(.cancelled(message: nil, now: now))
                app.write { transaction in
                    try transaction.deleteAllRequests()
                    try transaction.withdrawMatching(now: now) { $0.endedAt == nil }
                }
            case .appIsTerminated: machine.warnAProcess()
            case .appIsKilled: machine.killAProcess(by: .signalled(9))
            case .agentIsKilled: try replaceAgent()
            case .bothAreKilled:
                machine.killAProcess(by: .signalled(9))
                try replaceAgent()
            case .networkIsCut: machine.network.cutConnections()
            case .serverIsGone:
                machine.network.takeAway(origin)
                try machine.pass(5)
                machine.network.comeBack(origin)
            case .serverChangesTheFile:
                machine.network.server(origin).route("GET", "/file", .file(versions[1], etag: "\"v1\""))
                machine.network.cutConnections()
            case .diskIsFull:
                machine.setDiskFull(true)
                try machine.pass(30)
                machine.setDiskFull(false)
            case .clockIsSteppedForward: try machine.stepClock(3 * 3_600)
            case .clockIsSteppedBack: try machine.stepClock(-3 * 3_600)
            case .zoneChanges: try machine.travel(to: TimeZone(identifier: "America/New_York")!)
            case .machineSleeps: try machine.suspend(3 * 3_600)
            case .notificationServerIsGone:
                machine.desktop.vanish()
                try machine.pass(30)
                machine.desktop.appear()
            case .logout:
                try machine.stopAgent()
                try machine.pass(10)
                machine.killAgent()
                try machine.startAgent()
            }
            try machine.run()
        }

        private func replaceAgent() throws {
            machine.killAgent()
            try machine.startAgent()
        }

        func end() throws {
            // The user paused the download, and resumes it now.
            try machine.pass(100)
            change(.unpaused(now: now))
            if !machine.hasAgent { try machine.startAgent() }
            try machine.pass(20 * 3_600)
        }

        // MARK: Results

        func seen(_ state: MatrixState) throws -> String {
            let (history, transfers, notices, requests) = try machine.ledger.read {
                (try $0.history(limit: 100), try $0.transfers(), try $0.notifications(), try $0.requests())
            }
            var words: [String] = []
            switch state {
            case .checkWaitsForNoon, .checkIsAsking, .checkHandedOver, .answerIsBeingDelivered:
                words += history.map { launch in
                    (launch.kind == .appRefresh ? "check " : "delivery ") + (launch.outcome?.rawValue ?? "running")
                }
                if state == .checkWaitsForNoon, let first = history.first { words.append("at " + clock(first.startedAt)) }
                words.append("shown \(machine.desktop.history.count)×")
                if !requests.isEmpty, state != .checkWaitsForNoon { words.append("a request is left") }
                if transfers.contains(where: { !$0.state.isTerminal }) { words.append("a transfer is left") }
            case .downloadIsQueued, .downloadIsRunning, .downloadIsWaiting, .downloadIsPaused:
                words.append(transfers.map(\.state.rawValue).joined(separator: ", "))
                words += app.deliveries.map { delivery in
                    let version = MatrixCell.digests.firstIndex(of: delivery)
                    let other = delivery.count == 64 ? "OTHER BYTES" : delivery + " reported"
                    return version.map { "version \($0 + 1), complete" } ?? other
                }
                if let transfer = transfers.first, transfer.bytesOnWire > Int64(size) + 100_000 { words.append("started again") }
            case .uploadIsQueued, .uploadIsRunning, .uploadAwaitsItsAnswer, .uploadIsWaiting:
                words.append(transfers.map(\.state.rawValue).joined(separator: ", "))
                words.append("on the server \(dav.files.count { dav.contents(of: $0) == photo })×")
                if dav.files.count > 1 || dav.unfinishedUploads > 0 { words.append("something is left behind") }
                words.append("reported \(app.deliveries.count)×")
            case .noticeIsPending, .noticeIsBeingShown, .noticeStands, .noticeWasPressed:
                words.append("shown \(machine.desktop.history.count)×")
                words.append(notices.first.map(\.state.rawValue) ?? "gone")
                if state == .noticeWasPressed { words.append("received \(app.responses)×") }
            }
            return words.joined(separator: ", ")
        }

        private func clock(_ date: Date) -> String {
            var calendar = Calendar(identifier: .gregorian)
            calendar.timeZone = machine.clock.timeZone
            let parts = calendar.dateComponents([.hour, .minute], from: date)
            return String(format: "%02d:%02d", parts.hour ?? 0, parts.minute ?? 0)
        }
    }
}
