import ArgumentParser
import BackgroundCommands
import BackgroundRuntime
import BackgroundTransfer
import Foundation
import ProcessSupport
import Stormy
import Synchronization

struct UploadVerb: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "upload", abstract: "Queues photos for upload and exits.",
        discussion: """
            Stormy removes the location from the copy of a photo that is sent. To keep the location, use the option \
            --keep-location, or set location for the destination or keep_location in the configuration. The options have \
            priority over the configuration. The line location has priority over the line keep_location.

            Example:
              stormy upload IMG_2041.jpg --wait
              stormy upload --recursive ~/Pictures/storm --when charging
              find ~/Pictures -name '*.jpg' -mtime -1 -print0 | stormy upload -
              stormy upload --verify
            """)

    enum StartCondition: String, ExpressibleByArgument, CaseIterable {
        case now
        case charging
    }

    @Argument(
        help: "Photos, patterns with * and ?, folders (with --recursive), or - for a list on standard input.", completion: .file()
    )
    var files: [String] = []
    @Option(help: "The name of a configured destination.", completion: .destinations) var to: String?
    @Option(
        help: "The place whose latest storm is in the photos. Default: the place whose storm waits longest for a photo.",
        completion: .places) var storm: String?
    @Flag(help: "Choose photos with the desktop's file chooser if no file is named, and report problems in a notification.")
    var choose = false
    @Flag(help: "Show a progress bar, and wait until all photos are uploaded.") var wait = false
    @Flag(
        help: "Upload the photos in folders and their subfolders, except hidden files and folders and linked folders.")
    var recursive = false
    @Flag(help: "Upload photos with their location, and ignore the configuration.") var keepLocation = false
    @Flag(help: "Upload photos without their location, and ignore the configuration.") var removeLocation = false
    @Option(help: "When to upload: now, or charging (on external power and an unmetered network).") var when = StartCondition.now
    @Flag(help: "Upload photos again, even if they are on the server.") var again = false
    @Flag(help: "Verify that the servers still have the uploaded files. Without names, all files are verified.") var verify =
        false
    @Flag(help: "Print JSON.") var json = false

    func validate() throws {
        if files.isEmpty, !verify, !choose { throw ValidationError("missing argument: give the photos to upload") }
        if verify, wait || storm != nil || recursive || keepLocation || removeLocation || choose || again || when != .now {
            throw ValidationError("--verify can be used with files, --to and --json only")
        }
        if keepLocation, removeLocation { throw ValidationError("--keep-location and --remove-location cannot be used together") }
        if wait, when != .now {
            throw ValidationError("--wait and --when charging cannot be used together, because the upload may start days later")
        }
    }

    func run() async throws {
        try await DesktopCommandNotice.explainingFailures(choose) { try await upload() }
    }

    private func upload() async throws {
        try StormyTool.configure()
        if verify { return try await UploadVerification(store: try StormyStore.open()).run(files, at: to, json: json) }
        let destination = try Destinations().named(to)
        // The file chooser opens only after the command has checked that the destination is configured.
        let usesChooser = choose && files.isEmpty
        guard let given = usesChooser ? try await PhotoChoice.choosePhotos() : files else { return }
        var finder = PhotoFinder(isRecursive: recursive, acceptsPatterns: !usesChooser)
        let location = LocationDecision(
            option: keepLocation ? true : removeLocation ? false : nil, destination: destination,
            configuration: StormySettings.current.keepsLocation)
        let found = finder.addCompanions(PhotoCompanions(destination, location), to: finder.find(given))
        let said = PrintedEnds()
        var batch = Batch(
            PhotoUploads.BatchOptions(
                to: destination, location: location,
                storm: try storm.flatMap { try StormyStore.open().latestStorm(at: $0).id }, tells: ActionNotification.hasDesktop,
                isHeld: when == .charging, isAgain: again,
                follower: wait
                    ? FollowedPhotos(try StormyStore.open(), notifies: ActionNotification.hasDesktop) { said.printLine($0, $1) }
                    : nil
            ))
        try TransferReport.reconcile(try StormyStore.open())
        let hasFiles = found.contains { if case .file = $0 { true } else { false } }
        // The processing task is requested before and after the photos are queued. Without the first request, the photos would
        // wait forever if this process were killed between the two steps.
        if batch.order.isHeld, hasFiles { try HeldUploads.submit() }
        try await batch.add(found)
        for sentence in finder.sentences { Output.sentence(sentence) }
        if found.isEmpty { Output.note("nothing to upload: no photo was found") }
        try wake(&batch, said)
        if batch.hasContinued { try await PhotoBatch.withdrawFailureNotifications(StormyStore.open()) }
        if batch.order.isHeld, !batch.transfers.isEmpty { try HeldUploads.submit() }
        if !json, batch.queued > 0 {
            Output.line(batch.order.location.sentence)
            let rest = batch.order.isHeld ? ", held until there is external power and an unmetered network" : ""
            Output.line("Queued \(batch.count(batch.queuedNow)) for \(destination.name)\(rest).")
            for line in try StormyStore.open().stormsOfPhotos(batch.queuedPhotos) { Output.line(line) }
        }
        if let follower = batch.order.follower, !batch.toFollow.isEmpty {
            for (transfer, status) in try await follow(batch.toFollow, follower, said, count: batch.count) {
                batch.recordNotUploaded(transfer, status)
            }
        }
        if json { try Output.json(try reports(batch)) }
        if choose { try await batch.showResultNotification() }
        try batch.problem.throwIfAny()
    }

    /// Resumes paused uploads of photos that were added before. If this command does not wait for external power, also resumes
    /// uploads that wait for external power.
    private func wake(_ batch: inout Batch, _ said: PrintedEnds) throws {
        let transfers = batch.known
        guard !transfers.isEmpty else { return }
        if batch.order.isHeld {
            try BackgroundTransfers.unpause(transfers)
        } else {
            try BackgroundTransfers.perform(.resume, on: .ids(Set(transfers))) { _ in batch.order.destination.asCredential }
        }
        // Another command may have cancelled a transfer after this command found the transfer.
        let unfinished = try BackgroundTransfers.unfinished(among: transfers)
        for ended in try BackgroundTransfers.statuses(of: transfers.filter { !unfinished.contains($0) })
        where ended.state != .completed {
            said.printLine(ended.id, ended.file ?? "transfer \(ended.id)", ended.state.rawValue, ended.trouble?.message ?? "")
            batch.recordNotUploaded(ended.id, .unavailable)
        }
    }

    /// The photos of one call, and their results.
    private struct Batch {
        let order: PhotoUploads.BatchOptions
        private(set) var transfers: [Int64] = []
        /// The unfinished transfers of photos that were added before.
        private(set) var known: [Int64] = []
        /// The numbers of transfers whose photos were uploaded before this command began to wait.
        private var arrived: Set<Int64> = []
        var toFollow: [Int64] { transfers.filter { !arrived.contains($0) } }
        /// The photos that this call queued, by their numbers in the store.
        private(set) var queuedPhotos: Set<Int64> = []
        /// Transfers that this call queued.
        private(set) var queuedNow: Set<Int64> = []
        var queued: Int { queuedNow.count }
        /// `true` if the command has resumed an upload that had failed.
        private(set) var hasContinued = false
        /// The numbers in the store of the photos that are held back because of their location.
        private(set) var held: [Int64] = []
        private(set) var problem = FirstProblem()
        /// The position of each transfer's file among the files that were given.
        private var positions: [Int64: Int] = [:]
        /// The transfers of files that belong to photos.
        private var companions: Set<Int64> = []
        /// Files that were not queued. The file is `nil` if only the message contains the file's name.
        private(set) var refused: [(file: String?, failure: CommandFailure)] = []
        /// The reasons why photos were not queued, and sentences about photos that were added before. A notification shows these
        /// texts if the command has no terminal.
        private var troubles: [String] = []
        private var knownBefore: [String] = []

        /// The number of photos that one durable commit stores. The first commits contain few photos, so that the agent begins to
        /// send photos early. Later commits contain more photos, because each commit takes time.
        private static let sizes = (first: 100, largest: 400)

        init(_ order: PhotoUploads.BatchOptions) { self.order = order }

        /// Returns a text such as "2 photos and 1 companion file".
        func count(_ transfers: Set<Int64>) -> String {
            let others = transfers.intersection(companions).count
            let files = others == 1 ? "1 companion file" : "\(others) companion files"
            let photos = PhotoRecord.count(transfers.count - others)
            return others == 0 ? photos : transfers.count == others ? files : "\(photos) and \(files)"
        }

        /// Adds photos. A file that cannot be sent is reported, and the other files are still added. While some photos are
        /// committed, the next photos are copied and cleaned.
        mutating func add(_ found: [PhotoFinder.Found]) async throws {
            let uploads = PhotoUploads(store: try StormyStore.open())
            let order = order
            func begin(_ files: [PhotoFile]) -> Task<[Result<PhotoUploads.Prepared, any Error>], Never> {
                Task.detached { uploads.prepare(files, order) }
            }
            var readable: [(position: Int, file: PhotoFile)] = []
            for (position, found) in found.enumerated() {
                switch found {
                case .file(let file): readable.append((position, file))
                case .problem(let failure): report(failure, position)
                }
            }
            var (batches, rest, size) = ([ArraySlice<(position: Int, file: PhotoFile)>](), readable[...], Self.sizes.first)
            while !rest.isEmpty {
                // Files that belong together are queued in one commit.
                let end = rest.dropFirst(size).firstIndex { $0.file.role == .photo } ?? rest.endIndex
                batches.append(rest[..<end])
                (rest, size) = (rest[end...], min(2 * size, Self.sizes.largest))
            }
            var ahead = batches.first.map { begin($0.map(\.file)) }
            for (index, batch) in batches.enumerated() {
                let results = await ahead?.value ?? []
                ahead = index + 1 < batches.count ? begin(batches[index + 1].map(\.file)) : nil
                var prepared: [(position: Int, file: PhotoFile, photo: PhotoUploads.Prepared)] = []
                for ((position, file), result) in zip(batch, results) {
                    do { prepared.append((position, file, try result.get())) } catch {
                        report(CommandFailure(ofStormy: error), of: file.path, position)
                    }
                }
                for ((position, file, _), result) in zip(prepared, try uploads.queue(prepared.map(\.photo), order)) {
                    do { report(try result.get(), of: file, position) } catch {
                        report(CommandFailure(ofStormy: error), of: file.path, position)
                    }
                }
            }
        }

        private mutating func report(_ failure: CommandFailure, _ position: Int, file: String? = nil) {
            problem.report(failure, at: position)
            refused.append((file, failure))
            troubles.append(failure.message)
        }

        /// Adds the path of the user's file to a message that contains only the path of the copy.
        private mutating func report(_ failure: CommandFailure, of file: String, _ position: Int) {
            let named =
                failure.message.contains(file)
                ? failure : CommandFailure(failure.status, "\(file) was not queued: \(failure.message)")
            report(named, position, file: file)
        }

        /// Records a transfer that failed or was cancelled while the command waited. The reason was already printed.
        mutating func recordNotUploaded(_ transfer: Int64, _ status: ExitStatus) {
            problem.add(status, at: positions[transfer] ?? .max)
        }

        private mutating func report(_ result: PhotoUploads.Result, of photo: PhotoFile, _ position: Int) {
            let file = photo.path
            if photo.role != .photo, let transfer = result.transfer { companions.insert(transfer) }
            switch result {
            case .queued(let photo, let transfer, let removed, let note, let isContinued):
                queuedPhotos.insert(photo)
                hasContinued = hasContinued || isContinued
                transfers.append(transfer)
                positions[transfer] = position
                queuedNow.insert(transfer)
                if !removed.isEmpty { Output.sentence("\(file): location removed (\(UploadVerb.short(removed)))") }
                if let note { Output.sentence("\(file): \(note)") }
            case .held(let photo, let reason):
                held.append(photo)
                troubles.append("\(file): held back: \(reason)")
                Output.sentence("\(file): held back: \(reason)")
                problem.add(.notPermitted, at: position)
            case .known(_, let transfer, let url):
                if let transfer {
                    transfers.append(transfer)
                    positions[transfer] = min(position, positions[transfer] ?? position)
                    // The transfer of an uploaded photo is not resumed, because in a new ledger its number may belong to another
                    // photo.
                    if url == nil { known.append(transfer) } else { arrived.insert(transfer) }
                }
                let sentence = "\(file): \(url.map { "is already uploaded, as \($0)" } ?? "is already queued")"
                knownBefore.append(sentence)
                Output.sentence(sentence)
            }
        }

        /// Shows the results as a notification. Another notification later shows the results of the queued uploads.
        func showResultNotification() async throws {
            if !troubles.isEmpty {
                try await ActionNotification.show("Photo not queued", sentences: troubles)
            } else if queued == 0, !knownBefore.isEmpty {
                try await ActionNotification.show("Photos are already uploaded or queued", sentences: knownBefore)
            }
        }
    }

    /// Returns a text with the first four names of blocks, and the number of the remaining names.
    private static func short(_ names: [String]) -> String {
        names.prefix(4).joined(separator: ", ") + (names.count > 4 ? " and \(names.count - 4) more" : "")
    }

    /// Returns the transfers, the photos that are held back, and the files that were not queued.
    private func reports(_ batch: Batch) throws -> [UploadReport] {
        let held = Set(batch.held)
        let photos = held.isEmpty ? [] : try StormyStore.open().photos().filter { $0.id.map(held.contains) ?? false }
        let location = batch.order.location
        return try BackgroundTransfers.statuses(of: batch.transfers).map { transfer in
            .transfer(TransferReport(transfer), batch.queuedNow.contains(transfer.id) ? location : nil)
        } + photos.map { .transfer(TransferReport($0), location) } + batch.refused.map { .refused(file: $0.file, $0.failure) }
    }

    /// - Returns: The transfers that did not complete, and their exit codes. A paused transfer has the exit code of a temporary
    ///   failure, because it can continue.
    private func follow(
        _ transfers: [Int64], _ follower: FollowedPhotos, _ said: PrintedEnds, count: (Set<Int64>) -> String
    ) async throws -> [Int64: ExitStatus] {
        let interruption = InterruptionNotice(of: transfers)
        defer { interruption.end() }
        let bar = ProgressBar()
        let ended = try await AgentWatch.during {
            try await BackgroundTransfers.follow(transfers, untilReported: true) { tally in
                bar.show(done: tally.bytesDone, of: tally.bytesTotal, waiting: tally.waitingMessage)
            }
        }
        bar.end()
        let paused = Set(ended.filter { $0.state == .paused }.map(\.id))
        for transfer in ended where transfer.state != .completed {
            let hint = "stormy transfers resume \(transfer.id) continues the upload"
            said.printLine(
                transfer.id, transfer.file ?? "transfer \(transfer.id)", transfer.state.rawValue,
                paused.contains(transfer.id) ? hint : transfer.trouble?.message ?? "")
        }
        printRemarks(of: ended)
        try await follower.finish()
        // If the ledger does not contain a transfer any more, the transfer counts as not complete.
        let missing = Set(transfers).subtracting(ended.filter { $0.state == .completed }.map(\.id))
        guard missing.isEmpty else {
            return missing.reduce(into: [:]) { $0[$1] = paused.contains($1) ? .tryAgain : .unavailable }
        }
        let bytes = ended.reduce(0) { $0 + ($1.bytesTotal ?? 0) }
        // With `--json`, the printed JSON contains the result.
        if !json, !Output.writeOutputLine("Uploaded \(count(Set(transfers))), \(Output.bytes(bytes)).") {
            try await follower.show(completed: transfers)
        }
        return [:]
    }
}

/// An element of `upload --json`.
private enum UploadReport: Encodable {
    /// The file is queued. The second value is the decision of this command about the location of the photo. `nil` if the photo
    /// was added before.
    case transfer(TransferReport, LocationDecision?)
    /// The file was not queued.
    case refused(file: String?, CommandFailure)

    private struct Decision: Encodable {
        let isKept: Bool
        let decidedBy: String
    }

    private struct Trouble: Encodable {
        let code: Int32
        let message: String
    }

    private enum Key: CodingKey { case id, file, state, error, location }

    func encode(to encoder: any Encoder) throws {
        if case .transfer(let transfer, _) = self { try transfer.encode(to: encoder) }
        var container = encoder.container(keyedBy: Key.self)
        switch self {
        case .transfer(_, let location):
            try container.encode(
                OrNull(location.map { Decision(isKept: $0.keeps, decidedBy: $0.source.rawValue) }), forKey: .location)
        case .refused(let file, let failure):
            try container.encodeNil(forKey: .id)
            try container.encode(OrNull(file), forKey: .file)
            try container.encode("notQueued", forKey: .state)
            try container.encode(Trouble(code: failure.status.rawValue, message: failure.message), forKey: .error)
            try container.encodeNil(forKey: .location)
        }
    }
}

/// Prints the results of uploads while the command waits, and records which results were printed. Each failure is printed
/// immediately, because the terminal may be closed before the last upload ends.
private final class PrintedEnds: Sendable {
    private let transfers = Mutex<Set<Int64>>([])
    /// The output of the command. The output is stored here, because code in a delegate's queue cannot read task-local values.
    private let output = CapturedOutput.current

    /// - Returns: `false` if the terminal did not accept the line.
    func printLine(_ photo: PhotoRecord, _ transfer: Int64) -> Bool {
        // Successful uploads are printed together at the end.
        guard photo.state != .completed else { return Output.takes() }
        return printLine(transfer, photo.path ?? "transfer \(transfer)", photo.state.rawValue, photo.message ?? "")
    }

    @discardableResult
    func printLine(_ transfer: Int64, _ name: String, _ state: String, _ why: String) -> Bool {
        guard transfers.withLock({ $0.insert(transfer).inserted }) else { return true }
        return CapturedOutput.$current.withValue(output) {
            ProgressBar.clearLine()
            return Output.writeNote(Output.oneLine("\(name): \(state): \(why)"))
        }
    }
}
