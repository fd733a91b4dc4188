import ArgumentParser
import BackgroundCommands
import BackgroundLedger
import BackgroundRuntime
import Foundation
import Stormy
import TransferMachines

struct TransfersVerb: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "transfers", abstract: "Every download, upload and waiting photo job.",
        discussion: "Example:\n  stormy transfers\n  stormy transfers retry 12\n  stormy transfers pause all")

    enum Action: String, ExpressibleByArgument, CaseIterable {
        case cancel
        case pause
        case resume
        case retry

        func event(now: Date) -> TransferLife.Event {
            switch self {
            case .cancel: .cancelled(message: "Cancelled by hand.", now: now)
            case .pause: .paused
            case .resume: .resumed(now: now)
            case .retry: .retried(now: now)
            }
        }
    }

    @Argument(help: "cancel, pause, resume or retry.") var action: Action?
    @Argument(help: "Transfers by their ids, or \"all\".") var ids: [String] = []
    @Flag(help: "Print JSON.") var json = false

    func validate() throws {
        if action != nil, ids.isEmpty { throw ValidationError("say which: ids, or \"all\"") }
    }

    func run() async throws {
        try StormyTool.configure()
        let store = try StormyStore.open()
        if let action { try apply(action, store) }
        let reports = try TransferReport.all(store)
        if json { return try Output.json(reports) }
        guard action == nil else { return }
        if reports.isEmpty { Output.line("No transfers.") }
        for report in reports { Output.line(Self.line(report)) }
    }

    private static func line(_ report: TransferReport) -> String {
        let name = report.file.value.map { URL(fileURLWithPath: $0).lastPathComponent } ?? report.url.value ?? ""
        var parts = [report.id, report.kind, report.state, name]
        if let total = report.bytesTotal.value, total > 0 {
            parts.append("\(Output.bytes(report.bytesDone)) of \(Output.bytes(total)) (\(report.bytesDone * 100 / total) %)")
        }
        if let next = report.nextAttemptAt.value { parts.append("next attempt \(Output.relative(next))") }
        if let error = report.error.value { parts.append(error.message) }
        if let note = report.note.value { parts.append(note) }
        // A name that a server chose must not look like rows of its own.
        return parts.joined(separator: "  ").replacingOccurrences(of: "\n", with: " ")
    }

    private func apply(_ action: Action, _ store: StormyStore) throws {
        var unknown = Set(ids.filter { $0 != "all" })
        if action == .cancel {
            for photo in try store.photos() {
                let id = TransferReport.identifier(of: photo)
                guard ids.contains("all") || ids.contains(id), let number = photo.id else { continue }
                if try store.cancelPhoto(number) { unknown.remove(id) }
            }
        }
        if action != .cancel {
            for id in unknown.sorted() where try store.photos().contains(where: { TransferReport.identifier(of: $0) == id }) {
                throw CommandFailure(.usage, "\(id) is not being sent: only cancel applies to it")
            }
        }
        let (destinations, photos) = (try Destinations(), try store.photos())
        let now = AppRuntime.shared.now
        let changed = try AppRuntime.shared.ledger().write {
            transaction -> (count: Int, unknown: Set<String>, orphans: [Int64], letFinish: [Int64]) in
            var count = 0
            var letFinish: [Int64] = []
            var unknown = unknown
            var orphans: [Int64] = []
            for var transfer in try transaction.transfers() {
                guard ids.contains("all") || ids.contains(String(transfer.id!)) else { continue }
                unknown.remove(String(transfer.id!))
                let event = action.event(now: now)
                guard transfer.isChanged(by: event) else {
                    if action == .pause, transfer.state == .running { letFinish.append(transfer.id!) }
                    continue
                }
                try transaction.handle(event, &transfer, now: now)
                if transfer.state == .queued, let order = transfer.upload, order.method != .plain {
                    if let destination = try destinations.of(transfer, photos) {
                        transfer.renewCredential(destination)
                        try transaction.update(transfer)
                    } else {
                        orphans.append(transfer.id!)
                    }
                }
                count += 1
            }
            return (count, unknown, orphans, letFinish)
        }
        if let first = changed.unknown.sorted().first { throw CommandFailure(.notFound, "no transfer has the id \(first)") }
        for orphan in changed.orphans {
            Output.note("\(orphan): its destination is not in the configuration any more; it goes there as it was queued")
        }
        for number in changed.letFinish {
            Output.note("\(number): is let finish, as nobody could know whether the server carried it out")
        }
        if !json { Output.note("\(action.rawValue): \(changed.count) transfer\(changed.count == 1 ? "" : "s")") }
    }
}
