import ArgumentParser
import BackgroundCommands
import BackgroundTransfer
import Foundation
import Stormy

struct TransfersVerb: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "transfers", abstract: "Lists downloads, uploads and photo requests, or changes them.",
        discussion: "Example:\n  stormy transfers\n  stormy transfers retry 12\n  stormy transfers pause all")

    /// The action that the command performs on transfers. `clear` changes only which transfers the command `transfers` shows.
    enum Action: String, CaseIterable, ExpressibleByArgument {
        case cancel, pause, resume, retry, clear

        /// `nil` for ``clear``.
        var ofTransfers: BackgroundTransfers.Action? { BackgroundTransfers.Action(rawValue: rawValue) }
    }

    @Argument(help: "The action: cancel, pause, resume, retry, or clear (removes ended transfers from the list).") var action:
        Action?
    @Argument(help: "The ids of the transfers to change, or \"all\".", completion: .transferIDs) var ids: [String] = []
    @Flag(help: "Also show the requests for forecasts, and transfers that were cleared.") var all = false
    @Option(help: "The maximum number of completed and cancelled transfers to show.") var limit = 20
    @Flag(help: "Keep running, and show the transfers again after each change.") var watch = false
    @Flag(name: .shortAndLong, help: "Print complete addresses and paths.") var verbose = false
    @Flag(help: "Print JSON, with all transfers.") var json = false

    func validate() throws {
        switch action {
        case .clear where !ids.isEmpty:
            throw ValidationError("clear expects no ids, because clear removes all ended transfers from the list")
        case .cancel, .pause, .resume, .retry:
            if ids.isEmpty { throw ValidationError("missing argument: give the ids of transfers, or \"all\"") }
        case .clear, nil: break
        }
        if let action, watch { throw ValidationError("--watch cannot be used with \(action.rawValue)") }
        guard limit >= 0 else { throw ValidationError("--limit expects 0 or a greater number") }
    }

    func run() async throws {
        switch action {
        case .cancel, .pause, .clear, nil: try StormyTool.configureIfPossible()
        case .resume, .retry: try StormyTool.configure()
        }
        guard let action else { return try await list() }
        let store = try StormyStore.open()
        let problem = try action.ofTransfers.map { try apply($0, store) }
        // After a pause, the progress notification is updated, because paused uploads do not count as remaining uploads.
        if action == .pause { try await PhotoBatch.showProgress(store) }
        if action == .retry {
            try store.listAgain(ids.contains("all") ? nil : ids)
            try await PhotoBatch.withdrawFailureNotifications(store)
        }
        if action == .clear { try clear(store) }
        if json { try Output.json(try TransferReport.all(store)) }
        try problem?.throwIfAny()
    }

    private func list() async throws {
        let store = try watch ? StormyStore.open() : StormyStore.toRead()
        var speeds = TransferSpeeds()
        guard watch else { return try show(store, &speeds) }
        try await store.showAgainOnChanges { try show(store, &speeds) }
    }

    private func show(_ store: StormyStore, _ speeds: inout TransferSpeeds) throws {
        let reports = try TransferReport.all(store)
        if json { return try Output.json(reports) }
        let cleared = all ? [] : try store.clearedTransfers()
        let names = try TransferNames(store)
        let shown = reports.filter { report in
            all
                || !(report.session == WeatherSession.identifier || Self.hiddenSessions.contains(report.session)
                    || report.hasEnded && cleared.contains(report.id))
        }
        speeds.measure(shown)
        for line in TransferList(shown, limit: limit).lines(
            isVerbose: verbose, speeds: speeds.bytesPerSecond, name: names.name(of:))
        {
            Output.line(line)
        }
        if let sentence = AgentReport.waiting { Output.line(sentence) }
    }

    /// The sessions of requests that only commands make. Their transfers are shown only with `--all`, and are not counted.
    static let hiddenSessions = [DestinationTrial.sessionIdentifier, PhotoUploads.checkSessionIdentifier]

    private func clear(_ store: StormyStore) throws {
        let ended = try TransferReport.all(store).filter { $0.hasEnded && $0.session != WeatherSession.identifier }
        let count = try store.clearTransfers(ended.map(\.id))
        if !json {
            let noun = count == 1 ? "transfer" : "transfers"
            Output.note(
                "Removed \(count) ended \(noun) from the list. `stormy transfers --all` still shows all ended transfers.")
        }
    }

    private func apply(_ action: BackgroundTransfers.Action, _ store: StormyStore) throws -> FirstProblem {
        var problem = FirstProblem()
        var unknown = Set(ids.filter { $0 != "all" })
        // If the store cannot be written, the transfers in the ledger are still cancelled.
        let photosEnded = Result { try action == .cancel ? cancelPhotos(store, &unknown) : 0 }
        // When a transfer continues, it uses the current configuration of its destination.
        let destinations = action == .resume || action == .retry ? try Destinations() : nil
        let photos = try store.photos()
        let photosBySubmission = photos.bySubmission
        let numbers = unknown.compactMap(BackgroundTransfers.number(of:))
        var selection = ids.contains("all") ? BackgroundTransfers.Selection.all : .ids(Set(numbers))
        if action == .retry {
            // The store is updated first, because a photo may have been uploaded twice. If the second upload has ended, it does
            // not prevent a retry of the first upload.
            try TransferReport.reconcile(store)
            selection = try withoutPhotosElsewhere(selection, store, &problem)
            Self.removeResultNotifications(try Self.selected(selection))
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
                "transfer \(id): the destination was removed or has a new address, but this upload uses the old address. "
                    + "To use the new address, cancel the upload and upload the file again."
            )
        }
        changes.printChanges(after: action, counts: !json, photos: cancelledPhotos, ids, failures, &problem)
        return problem
    }

    /// Returns the reason why an action has no effect, for an id that does not belong to a transfer. Returns `nil` if there is
    /// nothing to report.
    private static func failure(_ action: BackgroundTransfers.Action, _ id: String, _ photo: PhotoRecord?) -> CommandFailure? {
        let transfer = try? PhotoUploads.transfers(of: [photo].compactMap(\.self)).values.first?.id
        return switch photo?.state {
        case nil: CommandFailure(.notFound, "no transfer has the id \(id)")
        case .cancelled where action == .cancel: nil
        case .awaitingPhoto, .held: CommandFailure(.usage, "\(id) is not being uploaded, so only `cancel` applies to it")
        case .queued:
            CommandFailure(.usage, "\(id) is being uploaded. Use the id of the transfer instead (\(transfer ?? 0))")
        case .completed, .failed, .cancelled, .lost:
            CommandFailure(.unavailable, "the upload \(id) has ended, so `\(action.rawValue)` does not apply to it")
        }
    }

    /// Cancels photo requests, and photos that are held back because of their location. The agent has no transfers for these
    /// photos.
    ///
    /// - Returns: The number of cancelled photos.
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

    private static func selected(_ selection: BackgroundTransfers.Selection) throws -> [BackgroundTransferStatus] {
        switch selection {
        case .all: try BackgroundTransfers.all()
        case .ids(let ids): try BackgroundTransfers.statuses(of: ids.sorted())
        }
    }

    /// Removes the last notifications of retried transfers, so that the next result is shown even if both results have equal
    /// texts.
    private static func removeResultNotifications(_ retried: [BackgroundTransferStatus]) {
        let failed = retried.filter { $0.state.hasEnded && $0.state != .completed }
        Downloads.removeResultNotifications(failed.filter { $0.session == Downloads.sessionIdentifier })
    }

    /// Leaves out transfers that must not be retried. If the user has added the photo again, a retry would upload the photo
    /// twice. A photo whose presigned address was used for another photo would replace the other photo.
    private func withoutPhotosElsewhere(
        _ selection: BackgroundTransfers.Selection, _ store: StormyStore, _ problem: inout FirstProblem
    ) throws -> BackgroundTransfers.Selection {
        let asked = try Self.selected(selection)
        let ofOneFile = Set(StormySettings.current.destinations.filter(\.isForOneFile).map { $0.identity as String? })
        var skipped: Set<Int64> = []
        for transfer in asked where transfer.state.hasEnded && transfer.state != .completed {
            guard let obstacle = try store.retryPhoto(transfer.submission, isForOneFile: ofOneFile.contains) else { continue }
            skipped.insert(transfer.id)
            switch obstacle {
            case .photoWasGivenAgain: Output.note("transfer \(transfer.id) was not retried: \(obstacle)")
            case .addressIsTaken:
                let position = ids.firstIndex(of: String(transfer.id)) ?? ids.firstIndex(of: "all") ?? 0
                problem.report(CommandFailure(.inputOutput, "transfer \(transfer.id) was not retried: \(obstacle)"), at: position)
            }
        }
        guard !skipped.isEmpty else { return selection }
        switch selection {
        case .all: return .ids(Set(asked.map(\.id)).subtracting(skipped))
        case .ids(let ids): return .ids(ids.subtracting(skipped))
        }
    }
}
