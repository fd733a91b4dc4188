import ArgumentParser
import BackgroundCommands
import BackgroundLedger
import BackgroundRuntime
import Foundation
import Stormy

struct TransfersVerb: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "transfers", abstract: "Every download, upload and waiting photo job.",
        discussion: "Example:\n  stormy transfers\n  stormy transfers retry 12\n  stormy transfers pause all")

    enum Action: String, ExpressibleByArgument, CaseIterable {
        case cancel
        case pause
        case resume
        case retry
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
            transaction -> (count: Int, unknown: Set<String>, orphans: [Int64]) in
            var count = 0
            var unknown = unknown
            var orphans: [Int64] = []
            for var transfer in try transaction.transfers() {
                guard ids.contains("all") || ids.contains(String(transfer.id!)) else { continue }
                unknown.remove(String(transfer.id!))
                guard Self.change(&transfer, action) else { continue }
                if transfer.state == .queued, let order = transfer.upload, order.method != .plain {
                    if let destination = try destinations.of(transfer, photos) {
                        transfer.renewCredential(destination)
                    } else {
                        orphans.append(transfer.id!)
                    }
                }
                try transaction.update(transfer)
                if action == .retry { try transaction.forgetEvents(of: transfer.id!) }
                if transfer.state == .cancelled, transfer.isAdopted { try transaction.addEvent(for: transfer, now: now) }
                count += 1
            }
            return (count, unknown, orphans)
        }
        if let first = changed.unknown.sorted().first { throw CommandFailure(.notFound, "no transfer has the id \(first)") }
        for orphan in changed.orphans {
            Output.note("\(orphan): its destination is not in the configuration any more; it goes there as it was queued")
        }
        if !json { Output.note("\(action.rawValue): \(changed.count) transfer\(changed.count == 1 ? "" : "s")") }
    }

    /// `false`: the action means nothing in this state.
    static func change(_ transfer: inout TransferRecord, _ action: Action) -> Bool {
        let now = AppRuntime.shared.now
        switch (action, transfer.state) {
        case (.cancel, .queued), (.cancel, .running), (.cancel, .waiting), (.cancel, .paused):
            transfer.cancel(now: now, message: "Cancelled by hand.")
        case (.pause, .queued), (.pause, .running), (.pause, .waiting):
            transfer.state = .paused
            transfer.nextAttemptAt = nil
        case (.resume, _) where transfer.isSuspended && !transfer.state.isTerminal:
            transfer.isSuspended = false
            transfer.requeue(now: now)
        case (.resume, .paused), (.retry, .waiting), (.retry, .paused):
            transfer.requeue(now: now)
        case (.retry, .failed) where transfer.kind == .download || transfer.bodyFile != nil:
            transfer.beginAnew(now: now)
        default:
            return false
        }
        return true
    }
}
