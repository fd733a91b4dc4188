import ArgumentParser
import BackgroundTransfer
import Foundation

/// `transfers`.
public struct TransfersCommand: BackgroundCommand {
    public static let configuration = describe(
        "transfers", "Every download and upload of the app's sessions, and what a person wants of them.",
        example: "transfers resume all")

    @Argument(help: "cancel, pause, resume or retry.") var action: BackgroundTransfers.Action?
    @Argument(help: "Transfers by their ids, or \"all\".") var ids: [String] = []
    @Flag(name: .shortAndLong, help: "Print whole addresses and paths, too.") var verbose = false
    @Flag(help: "Print JSON.") var json = false

    public init() {}

    /// - Throws: what is wrong with the words.
    public func validate() throws {
        if action != nil, ids.isEmpty { throw ValidationError("say which: ids, or \"all\"") }
    }

    public func perform() async throws {
        if let action { try apply(action) }
        let reports = try BackgroundTransfers.all().map(TransferReport.init)
        if json { return try Output.json(reports) }
        guard action == nil else { return }
        if reports.isEmpty { Output.line("No transfers.") }
        for report in reports {
            Output.line(report.line())
            if verbose { report.details.forEach(Output.line) }
        }
    }

    private func apply(_ action: BackgroundTransfers.Action) throws {
        let named = Set(ids.filter { $0 != "all" })
        let numbers = named.filter { Int64($0).map(String.init) == $0 }
        if let first = named.subtracting(numbers).sorted().first {
            throw CommandFailure(.notFound, "no transfer has the id \(first)")
        }
        let changes = try BackgroundTransfers.perform(
            action, on: ids.contains("all") ? .all : .ids(Set(numbers.compactMap(Int64.init))))
        if let first = changes.unknown.sorted().first { throw CommandFailure(.notFound, "no transfer has the id \(first)") }
        changes.say(after: action, counts: !json)
    }
}

extension BackgroundTransfers.Changes {
    /// To the person who asked for them.
    package func say(after action: BackgroundTransfers.Action, counts: Bool) {
        for id in letFinish { Output.note("\(id): is let finish, as nobody could know whether the server carried it out") }
        if counts { Output.note("\(action.rawValue): \(changed.count) transfer\(changed.count == 1 ? "" : "s")") }
    }
}

extension BackgroundTransfers.Action: ExpressibleByArgument {}
