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

    public var effect: CommandEffect { action == nil ? .looks : .changes }

    /// - Throws: what is wrong with the words.
    public func validate() throws {
        if action != nil, ids.isEmpty { throw ValidationError("say which: ids, or \"all\"") }
    }

    public func perform() async throws {
        let problem = try action.map(apply)
        let reports = try BackgroundTransfers.all().map(TransferReport.init)
        if json { try Output.json(reports) }
        try problem?.throwIfAny()
        guard action == nil, !json else { return }
        if reports.isEmpty { Output.line("No transfers.") }
        for report in reports {
            Output.line(report.line())
            if verbose { report.details.forEach(Output.line) }
        }
        if let sentence = AgentReport.waiting { Output.line(sentence) }
    }

    private func apply(_ action: BackgroundTransfers.Action) throws -> FirstProblem {
        let numbers = ids.compactMap(BackgroundTransfers.number(of:))
        let changes = try BackgroundTransfers.perform(action, on: ids.contains("all") ? .all : .ids(Set(numbers)))
        let known = try BackgroundTransfers.known(numbers)
        var problem = FirstProblem()
        var failures: [Int: CommandFailure] = [:]
        for (position, id) in ids.enumerated() where id != "all" {
            if let number = BackgroundTransfers.number(of: id), known.contains(number) { continue }
            failures[position] = CommandFailure(.notFound, "no transfer has the id \(id)")
        }
        changes.say(after: action, counts: !json, ids, failures, &problem)
        return problem
    }
}

extension BackgroundTransfers {
    /// `nil` if the text is not the identifier of a transfer.
    package static func number(of identifier: String) -> Int64? {
        Int64(identifier).flatMap { String($0) == identifier ? $0 : nil }
    }

    /// Returns the numbers that a transfer has. With "all", no number is unknown to ``perform(_:on:renewal:)``.
    package static func known(_ numbers: [Int64]) throws -> Set<Int64> { Set(try statuses(of: numbers).map(\.id)) }
}

extension BackgroundTransfers.Changes {
    /// Prints what the user should know of the changes.
    ///
    /// - Parameters:
    ///   - ids: The arguments of the command.
    ///   - failures: Arguments that no transfer has as its identifier, by their positions.
    ///   - photos: The number of photos without a transfer that the action changed.
    ///   - problem: Notes the transfers that were named and for which the action did nothing.
    package func say(
        after action: BackgroundTransfers.Action, counts: Bool, photos: Int = 0, _ ids: [String],
        _ failures: [Int: CommandFailure], _ problem: inout FirstProblem
    ) {
        var failures = failures
        for id in mayBeOnServer {
            Output.note("\(id): cancelled while the file was sent; the server may have it already, so look there")
        }
        for id in letFinish {
            Output.note("\(id): not paused, because the server may have carried it out already; it is let finish")
            problem.note(.tryAgain, at: ids.firstIndex(of: String(id)) ?? ids.firstIndex(of: "all") ?? 0)
        }
        for id in ended {
            guard let position = ids.firstIndex(of: String(id)) else { continue }
            failures[position] = CommandFailure(.unavailable, "\(id) has ended: \(action.rawValue) does not apply to it")
        }
        for (position, failure) in failures.sorted(by: { $0.key < $1.key }) { problem.note(failure, at: position) }
        guard counts else { return }
        var parts = ["\(changed.count) transfer\(changed.count == 1 ? "" : "s")"]
        if photos > 0 { parts.append("\(photos) photo\(photos == 1 ? "" : "s")") }
        if changed.isEmpty, photos > 0 { parts.removeFirst() }
        Output.note("\(action.rawValue): \(parts.joined(separator: ", "))")
    }
}

extension BackgroundTransfers.Action: ExpressibleByArgument {}
