import ArgumentParser
import BackgroundCommands
import BackgroundTransfer
import Foundation
import Stormy

struct TransfersVerb: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "transfers", abstract: "Every download, upload and waiting photo job.",
        discussion: "Example:\n  stormy transfers\n  stormy transfers retry 12\n  stormy transfers pause all")

    @Argument(help: "cancel, pause, resume or retry.") var action: BackgroundTransfers.Action?
    @Argument(help: "Transfers by their ids, or \"all\".") var ids: [String] = []
    @Flag(help: "Print JSON.") var json = false

    func validate() throws {
        if action != nil, ids.isEmpty { throw ValidationError("say which: ids, or \"all\"") }
    }

    func run() async throws {
        switch action {
        case .cancel, .pause, nil: try StormyTool.configureIfPossible()
        case .resume, .retry: try StormyTool.configure()
        }
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

    private func apply(_ action: BackgroundTransfers.Action, _ store: StormyStore) throws {
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
        // What goes on goes to its destination as it is configured now.
        let destinations = action == .resume || action == .retry ? try Destinations() : nil
        let photos = try store.photos()
        let numbers = unknown.compactMap { id in Int64(id).flatMap { String($0) == id ? $0 : nil } }
        let changes = try BackgroundTransfers.perform(action, on: ids.contains("all") ? .all : .ids(Set(numbers))) {
            try destinations?.of($0, photos)?.asCredential
        }
        let nobodys = unknown.subtracting(numbers.map(String.init)).union(changes.unknown.map(String.init))
        if let first = nobodys.sorted().first { throw CommandFailure(.notFound, "no transfer has the id \(first)") }
        for id in changes.unrenewed {
            Output.note("\(id): its destination is not in the configuration any more; it goes there as it was queued")
        }
        for number in changes.letFinish {
            Output.note("\(number): is let finish, as nobody could know whether the server carried it out")
        }
        let count = changes.changed.count
        if !json { Output.note("\(action.rawValue): \(count) transfer\(count == 1 ? "" : "s")") }
    }
}

extension BackgroundTransfers.Action: ExpressibleByArgument {}
