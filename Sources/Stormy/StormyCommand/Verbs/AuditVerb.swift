import ArgumentParser
import BackgroundCommands
import BackgroundTransfer
import Foundation
import Stormy
import Synchronization

struct AuditVerb: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "audit", abstract: "Shows which photos in a folder are not safely uploaded.",
        discussion: """
            The exit code is 0 only if all photos in the folders are uploaded. Stormy compares the content of the files. If this \
            computer has no record of a photo, Stormy asks the server. Stormy never deletes a file.

            Example:
              stormy audit ~/Pictures
              stormy audit ~/Pictures --to home --verify
              stormy audit ~/Pictures --safe-to-delete
            """)

    @Argument(
        help: "Folders (with their subfolders) or photos. Default: the watched folders of the destination.", completion: .file())
    var folders: [String] = []
    @Option(help: "The name of a configured destination.", completion: .destinations) var to: String?
    @Flag(help: "Ask the server about all photos, and not only about unknown photos.") var verify = false
    @Flag(
        help: "Print only the photos whose content is proven to be on the server now, one path per line.") var safeToDelete =
        false
    @Flag(help: "Print JSON.") var json = false

    func validate() throws {
        if folders.contains("-") { throw ValidationError("a list on standard input is not supported") }
    }

    func run() async throws {
        try StormyTool.configure()
        let destination = try Destinations().named(to)
        let store = try StormyStore.open()
        let (found, sentences) = try find(destination, store)
        try TransferReport.reconcile(store)
        let files = found.compactMap { if case .file(let file) = $0 { file.path } else { nil } }
        let audit = PhotoAudit(
            store: store,
            options: PhotoAudit.Options(
                destination: destination, keepsLocation: StormySettings.current.keepsLocation, verifies: verify || safeToDelete,
                readsBack: safeToDelete))
        let bar = ProgressBar()
        let lock = Mutex(())
        let findings = try await AgentWatch.during {
            try await audit.run(files) { done, total, waiting in
                lock.withLock { _ in bar.show(done: done, of: total, waiting: waiting) }
            }
        }
        bar.end()
        for sentence in sentences { Output.sentence(sentence) }
        if let sentence = PhotoAudit.limit(of: destination) { Output.sentence(sentence) }
        let lines = zip(files, findings).map { AuditLine(file: $0, finding: $1) }
        try report(found, lines, destination)
    }

    /// Finds the photos, and returns sentences about files that were skipped.
    private func find(_ destination: PhotoDestination, _ store: StormyStore) throws -> ([PhotoFinder.Found], [String]) {
        guard folders.isEmpty else {
            var finder = PhotoFinder(isRecursive: true)
            let found = addingVideos(to: finder.find(folders), &finder, destination)
            return (found, finder.sentences)
        }
        let watches = try store.folderWatches().filter { $0.destination == destination.name }
        guard !watches.isEmpty else {
            throw CommandFailure(
                .usage, "missing argument: give the folders to check, because no folder is watched for \(destination.name)")
        }
        var (found, sentences): ([PhotoFinder.Found], [String]) = ([], [])
        for watch in watches {
            var finder = PhotoFinder(isRecursive: true, includesInnerFolders: watch.isRecursive, acceptsPatterns: false)
            found += addingVideos(to: finder.find([watch.path]), &finder, destination)
            sentences += finder.sentences
        }
        return (found, sentences)
    }

    /// Adds the videos of Live Photos. Sidecars are not checked, because programs change them after the upload of the photo.
    private func addingVideos(
        to found: [PhotoFinder.Found], _ finder: inout PhotoFinder, _ destination: PhotoDestination
    ) -> [PhotoFinder.Found] {
        let location = LocationDecision(
            option: nil, destination: destination, configuration: StormySettings.current.keepsLocation)
        return finder.addCompanions(PhotoCompanions(destination, location), to: found).filter { found in
            if case .file(let file) = found, case .sidecar = file.role { false } else { true }
        }
    }

    private func report(_ found: [PhotoFinder.Found], _ lines: [AuditLine], _ destination: PhotoDestination) throws {
        var problem = FirstProblem()
        var rest = lines[...]
        for (position, found) in found.enumerated() {
            switch found {
            case .problem(let failure): problem.report(failure, at: position)
            case .file:
                guard let line = rest.popFirst() else { continue }
                if let status = line.status { problem.add(status, at: position) }
                if !json, !safeToDelete, line.status != nil { Output.line(line.text) }
            }
        }
        if found.isEmpty { problem.report(CommandFailure(.notFound, "no photo was found"), at: 0) }
        if json {
            try Output.json(lines)
        } else if safeToDelete {
            printSafe(lines, destination)
        } else if !lines.isEmpty {
            Output.line(AuditLine.summary(lines, destination.name))
        }
        try problem.throwIfAny()
    }

    /// Prints the files that can be deleted. Everything else is printed on standard error, so that a script can use the list.
    private func printSafe(_ lines: [AuditLine], _ destination: PhotoDestination) {
        let safe = lines.filter(\.isProven)
        var (unlisted, changed) = (0, 0)
        for line in safe {
            if line.file.contains(where: \.isNewline) {
                unlisted += 1
                continue
            }
            Output.line(line.file)
            if line.isChanged { changed += 1 }
        }
        Output.note(AuditLine.summary(lines, destination.name))
        let rest = lines.count - safe.count
        if rest > 0 {
            Output.note("Not listed, because the content is not proven to be on the server: \(PhotoRecord.count(rest)).")
        }
        if changed > 0 {
            Output.note(
                "On the server without the location: \(PhotoRecord.count(changed)) of the list. Only your files contain the location."
            )
        }
        if unlisted > 0 {
            Output.note("Not listed, because the name has a line break: \(PhotoRecord.count(unlisted)). Use --json.")
        }
    }
}

/// The result of an audit for one file.
struct AuditLine: Encodable {
    let file: String
    private let finding: PhotoAudit.Finding

    init(file: String, finding: PhotoAudit.Finding) { (self.file, self.finding) = (file, finding) }

    /// The exit code. `nil` if the photo is uploaded.
    var status: ExitStatus? {
        switch finding {
        case .uploaded: nil
        case .onItsWay, .unknown: .tryAgain
        case .held: .notPermitted
        case .failed, .neverUploaded: .unavailable
        case .unreadable: .inputOutput
        }
    }

    var isProven: Bool { if case .uploaded(_, isProven: true, _) = finding { true } else { false } }
    var isChanged: Bool { if case .uploaded(_, _, isChanged: true) = finding { true } else { false } }

    /// The name of the state in the output for scripts.
    private var state: String {
        switch finding {
        case .uploaded: "uploaded"
        case .onItsWay: "onItsWay"
        case .held: "held"
        case .failed: "failed"
        case .neverUploaded: "neverUploaded"
        case .unreadable: "unreadable"
        case .unknown: "unknown"
        }
    }

    private var detail: String? {
        switch finding {
        case .uploaded, .neverUploaded: nil
        case .onItsWay(let reason): reason
        case .held(let reason), .failed(let reason), .unreadable(let reason), .unknown(let reason): reason
        }
    }

    var text: String {
        let words = Self.words.first { $0.state == state }?.text ?? state
        return Output.oneLine("\(file): \(words)" + (detail.map { ": \($0)" } ?? ""))
    }

    /// The words for each state, in the order of the summary.
    private static let words: [(state: String, text: String)] = [
        ("uploaded", "uploaded"), ("onItsWay", "on its way"), ("held", "held back"), ("failed", "not uploaded"),
        ("neverUploaded", "never uploaded"), ("unreadable", "cannot be read"), ("unknown", "not known"),
    ]

    /// Returns a sentence such as "200 photos for home: 190 uploaded, 10 never uploaded.".
    static func summary(_ lines: [AuditLine], _ destination: String) -> String {
        let parts = words.compactMap { state, text in
            let count = lines.count { $0.state == state }
            return count > 0 ? "\(count) \(text)" : nil
        }
        return "\(PhotoRecord.count(lines.count)) for \(destination): \(parts.joined(separator: ", "))."
    }

    private enum Key: CodingKey { case file, state, detail, url, isProven, isLocationRemoved }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(file, forKey: .file)
        try container.encode(state, forKey: .state)
        try container.encode(OrNull(detail), forKey: .detail)
        var address: String?
        if case .uploaded(let url, _, _) = finding { address = url }
        try container.encode(OrNull(address), forKey: .url)
        try container.encode(isProven, forKey: .isProven)
        try container.encode(isChanged, forKey: .isLocationRemoved)
    }
}
