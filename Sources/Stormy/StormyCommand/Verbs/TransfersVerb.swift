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
    @Flag(name: .shortAndLong, help: "Print whole addresses and paths, too.") var verbose = false
    @Flag(help: "Print JSON.") var json = false

    func validate() throws {
        if action != nil, ids.isEmpty { throw ValidationError("say which: ids, or \"all\"") }
    }

    func run() async throws {
        switch action {
        case .cancel, .pause, nil: try StormyTool.configureIfPossible()
        case .resume, .retry: try StormyTool.configure()
        }
        let store = try action == nil ? StormyStore.toRead() : StormyStore.open()
        let problem = try action.map { try apply($0, store) }
        // Nobody waits any more for what is paused.
        if action == .pause { try await PhotoBatch.tell(store) }
        if action == .retry { try await PhotoBatch.takeBackFailures(store) }
        let reports = try TransferReport.all(store)
        if json { try Output.json(reports) }
        try problem?.throwIfAny()
        guard action == nil, !json else { return }
        if reports.isEmpty { Output.line("No transfers.") }
        for report in reports {
            Output.line(Self.line(report))
            if verbose { report.details.forEach(Output.line) }
        }
        if let sentence = AgentReport.waiting { Output.line(sentence) }
    }

    private static func line(_ report: TransferReport) -> String {
        guard report.session == WeatherSession.identifier else { return report.line() }
        // Whose file is the agent's own.
        let host = report.url.value.flatMap(URLComponents.init(string:))?.host
        return report.line(name: "forecast of " + (host ?? "a weather service"))
    }

    private func apply(_ action: BackgroundTransfers.Action, _ store: StormyStore) throws -> FirstProblem {
        var problem = FirstProblem()
        var unknown = Set(ids.filter { $0 != "all" })
        // What the ledger can end it ends, also where this store cannot be written.
        let photosEnded = Result { try action == .cancel ? cancelPhotos(store, &unknown) : 0 }
        // What goes on goes to its destination as it is configured now.
        let destinations = action == .resume || action == .retry ? try Destinations() : nil
        let photos = try store.photos()
        let photosBySubmission = photos.bySubmission
        let numbers = unknown.compactMap(BackgroundTransfers.number(of:))
        var selection = ids.contains("all") ? BackgroundTransfers.Selection.all : .ids(Set(numbers))
        if action == .retry {
            // A photo that was given again, and whose upload has ended since, is no obstacle.
            try TransferReport.reconcile(store)
            selection = try withoutPhotosElsewhere(selection, store, &problem)
            Self.forgetTold(try Self.asked(selection))
        }
        let changes = try BackgroundTransfers.perform(action, on: selection) {
            try destinations?.of($0, photosBySubmission)?.asCredential
        }
        let cancelledPhotos = try photosEnded.get()
        unknown.subtract(try BackgroundTransfers.known(numbers).map(String.init))
        var failures: [Int: CommandFailure] = [:]
        for (position, id) in ids.enumerated() where unknown.remove(id) != nil {
            let photo = photos.first { TransferReport.identifier(of: $0) == id }
            failures[position] = Self.failure(action, id, photo)
        }
        for id in changes.unrenewed {
            Output.note(
                "\(id): its destination is not in the configuration any more; it goes to its old address. Or upload the file again."
            )
        }
        changes.say(after: action, counts: !json, photos: cancelledPhotos, ids, failures, &problem)
        return problem
    }

    /// Why an action does nothing for an id that is not of a transfer. `nil` if it has nothing to do.
    private static func failure(_ action: BackgroundTransfers.Action, _ id: String, _ photo: PhotoRecord?) -> CommandFailure? {
        let transfer = try? PhotoUploads.transfers(of: [photo].compactMap(\.self)).values.first?.id
        return switch photo?.state {
        case nil: CommandFailure(.notFound, "no transfer has the id \(id)")
        case .cancelled where action == .cancel: nil
        case .awaitingPhoto, .held: CommandFailure(.usage, "\(id) is not being sent: only cancel applies to it")
        case .queued:
            CommandFailure(.usage, "\(id) is being sent: use the id of its transfer instead (\(transfer ?? 0))")
        case .completed, .failed, .cancelled, .lost:
            CommandFailure(.unavailable, "\(id) has ended: \(action.rawValue) does not apply to it")
        }
    }

    /// Photos that are with no agent: jobs that wait, and those that are held back.
    ///
    /// - Returns: How many were cancelled.
    private func cancelPhotos(_ store: StormyStore, _ unknown: inout Set<String>) throws -> Int {
        var count = 0
        for photo in try store.photos() {
            let id = TransferReport.identifier(of: photo)
            guard ids.contains("all") || ids.contains(id), let number = photo.id else { continue }
            guard try store.cancelPhoto(number) else { continue }
            unknown.remove(id)
            count += 1
        }
        return count
    }

    private static func asked(_ selection: BackgroundTransfers.Selection) throws -> [BackgroundTransferStatus] {
        switch selection {
        case .all: try BackgroundTransfers.all()
        case .ids(let ids): try BackgroundTransfers.statuses(of: ids.sorted())
        }
    }

    /// How it ends this time is told, also in the words of the last time.
    private static func forgetTold(_ retried: [BackgroundTransferStatus]) {
        let failed = retried.filter { $0.state.hasEnded && $0.state != .completed }
        Downloads.forgetTold(failed.filter { $0.session == Downloads.sessionIdentifier })
    }

    /// A photo that was given again since its upload failed would be there twice. One whose presigned address has another photo by now
    /// would replace that, and is not sent.
    private func withoutPhotosElsewhere(
        _ selection: BackgroundTransfers.Selection, _ store: StormyStore, _ problem: inout FirstProblem
    ) throws -> BackgroundTransfers.Selection {
        let asked = try Self.asked(selection)
        let ofOneFile = Set(StormySettings.current.destinations.filter(\.isForOneFile).map { $0.identity as String? })
        var skipped: Set<Int64> = []
        for transfer in asked where transfer.state.hasEnded && transfer.state != .completed {
            guard let obstacle = try store.retryPhoto(transfer.submission, isForOneFile: ofOneFile.contains) else { continue }
            skipped.insert(transfer.id)
            switch obstacle {
            case .photoWasGivenAgain: Output.note("\(transfer.id): \(obstacle)")
            case .addressIsTaken:
                let position = ids.firstIndex(of: String(transfer.id)) ?? ids.firstIndex(of: "all") ?? 0
                problem.note(CommandFailure(.inputOutput, "\(transfer.id) was not retried: \(obstacle)"), at: position)
            }
        }
        guard !skipped.isEmpty else { return selection }
        switch selection {
        case .all: return .ids(Set(asked.map(\.id)).subtracting(skipped))
        case .ids(let ids): return .ids(ids.subtracting(skipped))
        }
    }
}
