import ArgumentParser
import BackgroundTransfer
import Foundation

/// The command `transfers`, which lists and changes the transfers of the app.
public struct TransfersCommand: BackgroundCommand {
    public static let configuration = describe(
        "transfers", "Lists downloads and uploads, or cancels, pauses, resumes or retries them.",
        example: "transfers resume all")

    @Argument(help: "The action for the transfers: cancel, pause, resume or retry.") var action: BackgroundTransfers.Action?
    @Argument(help: "The ids of the transfers to change, or \"all\".", completion: .transferIDs) var ids: [String] = []
    @Option(help: "The maximum number of completed and cancelled transfers to show.") var limit = 20
    @Flag(help: "Keep running, and show the transfers again after each change.") var watch = false
    @Flag(name: .shortAndLong, help: "Print complete addresses and paths.") var verbose = false
    @Flag(help: "Print JSON.") var json = false

    public init() {}

    public var effect: CommandEffect { action == nil ? .reads : .changes }

    /// - Throws: an error that describes invalid arguments.
    public func validate() throws {
        if action != nil, ids.isEmpty { throw ValidationError("missing argument: give the ids of transfers, or \"all\"") }
        if let action, watch { throw ValidationError("--watch cannot be used with \(action.rawValue)") }
        guard limit >= 0 else { throw ValidationError("--limit expects 0 or a greater number") }
    }

    public func perform() async throws {
        if let action {
            let problem = try apply(action)
            if json { try Output.json(try BackgroundTransfers.all().map(TransferReport.init)) }
            return try problem.throwIfAny()
        }
        var speeds = TransferSpeeds()
        guard watch else { return try show(&speeds) }
        try await LiveView.run { try show(&speeds) }
    }

    private func show(_ speeds: inout TransferSpeeds) throws {
        let reports = try BackgroundTransfers.all().map(TransferReport.init)
        if json { return try Output.json(reports) }
        speeds.measure(reports)
        TransferList(reports, limit: limit).lines(isVerbose: verbose, speeds: speeds.bytesPerSecond).forEach { Output.line($0) }
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
        changes.printChanges(after: action, counts: !json, ids, failures, &problem)
        return problem
    }
}

extension BackgroundTransfers {
    /// Returns the number of the transfer with this identifier. Returns `nil` if the text cannot be the identifier of a transfer.
    package static func number(of identifier: String) -> Int64? {
        Int64(identifier).flatMap { String($0) == identifier ? $0 : nil }
    }

    /// Returns the given numbers for which a transfer exists.
    package static func known(_ numbers: [Int64]) throws -> Set<Int64> { Set(try statuses(of: numbers).map(\.id)) }
}

extension BackgroundTransfers.Changes {
    /// Prints the changes that an action made.
    ///
    /// - Parameters:
    ///   - ids: The arguments of the command.
    ///   - failures: The errors for arguments that are not the identifier of a transfer. The keys are the positions of the
    ///     arguments.
    ///   - photos: The number of changed photos that have no transfer.
    ///   - problem: The record of problems. The method adds each transfer that the user named in the arguments and that the
    ///     action did not change.
    package func printChanges(
        after action: BackgroundTransfers.Action, counts: Bool, photos: Int = 0, _ ids: [String],
        _ failures: [Int: CommandFailure], _ problem: inout FirstProblem
    ) {
        var failures = failures
        for id in mayBeOnServer {
            Output.note("transfer \(id) was cancelled during the upload. Check whether the file is on the server")
        }
        for id in letFinish {
            Output.note("transfer \(id) was not paused, because the server may already have the file. The upload continues")
            problem.add(.tryAgain, at: ids.firstIndex(of: String(id)) ?? ids.firstIndex(of: "all") ?? 0)
        }
        for id in withoutCopy {
            guard let position = ids.firstIndex(of: String(id)) ?? ids.firstIndex(of: "all") else { continue }
            let failure = CommandFailure(
                .unavailable,
                "transfer \(id) was not retried, because the queued copy of its file is missing. Upload the file again")
            // If the argument is "all", each failure is reported now, because `failures` contains only one failure for each
            // argument.
            if ids[position] == "all" { problem.report(failure, at: position) } else { failures[position] = failure }
        }
        for id in ended {
            guard let position = ids.firstIndex(of: String(id)) else { continue }
            failures[position] = CommandFailure(
                .unavailable, "transfer \(id) has ended, so `\(action.rawValue)` does not apply to it")
        }
        for (position, failure) in failures.sorted(by: { $0.key < $1.key }) { problem.report(failure, at: position) }
        guard counts else { return }
        if changed.isEmpty, photos == 0 {
            if ids.contains("all") { Output.note("No transfer was changed, because there is nothing to \(action.rawValue).") }
            return
        }
        var parts = ["\(changed.count) transfer\(changed.count == 1 ? "" : "s")"]
        if photos > 0 { parts.append("\(photos) photo\(photos == 1 ? "" : "s")") }
        if changed.isEmpty, photos > 0 { parts.removeFirst() }
        Output.note("\(action.past) \(parts.joined(separator: " and ")).")
    }
}

extension BackgroundTransfers.Action: ExpressibleByArgument {
    /// The action in the past tense, as the first word of a printed sentence, for example "Cancelled".
    fileprivate var past: String {
        switch self {
        case .cancel: "Cancelled"
        case .pause: "Paused"
        case .resume: "Resumed"
        case .retry: "Retried"
        }
    }
}
