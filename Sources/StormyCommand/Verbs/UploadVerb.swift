import ArgumentParser
import BackgroundCommands
import BackgroundLedger
import BackgroundRuntime
import Foundation
import Stormy

struct UploadVerb: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "upload", abstract: "Queues photos for upload and returns at once.",
        discussion: "Example:\n  stormy upload IMG_2041.jpg --wait")

    @Argument(help: "Photos.", completion: .file()) var files: [String]
    @Option(help: "A configured destination.") var to: String?
    @Flag(help: "Follow them to the end, with a progress bar.") var wait = false
    @Flag(help: "Send photos that say where they were taken as they are.") var keepLocation = false
    @Flag(help: "Print JSON.") var json = false

    func run() async throws {
        try StormyTool.configure()
        let destination = try StormyTool.destination(named: to)
        let uploads = PhotoUploads(store: try StormyStore.open())
        var failure: CommandFailure?
        var transfers: [Int64] = []
        var held = 0
        // One bad file does not keep the others: each says what is wrong with it.
        for file in files {
            do {
                // What Swift cannot read as text arrives with replacement characters, and names another file.
                guard !file.contains("\u{FFFD}") || FileManager.default.fileExists(atPath: file) else {
                    throw CommandFailure(.badData, "\(file): its name is not UTF-8; rename it first")
                }
                let url = URL(fileURLWithPath: file)
                switch try uploads.add(url, to: destination, keepsLocation: keepLocation || StormySettings.current.keepsLocation)
                {
                case .queued(_, let transfer): transfers.append(transfer)
                case .held:
                    held += 1
                    Output.note("\(file): held back, it says where it was taken; --keep-location sends it as it is")
                }
            } catch {
                let problem = CommandFailure(ofStormy: error)
                Output.note("stormy: \(problem.message)")
                failure = failure ?? problem
            }
        }
        if !json, !transfers.isEmpty {
            Output.line("Queued \(transfers.count) photo\(transfers.count == 1 ? "" : "s") for \(destination.name).")
        }
        if wait, !transfers.isEmpty { try await follow(transfers) }
        if json { try Output.json(try reports(transfers)) }
        if let failure { throw ExitCode(failure.status.rawValue) }
        if transfers.isEmpty, held > 0 { throw ExitCode(ExitStatus.notPermitted.rawValue) }
    }

    private func reports(_ transfers: [Int64]) throws -> [TransferReport] {
        try AppRuntime.shared.ledger().read { transaction in
            try transfers.compactMap { try transaction.transfer($0) }.map(TransferReport.init)
        }
    }

    private func follow(_ transfers: [Int64]) async throws {
        let bar = ProgressBar()
        let ended = try await AppRuntime.shared.wait { transaction -> [TransferRecord]? in
            let records = try transfers.compactMap { try transaction.transfer($0) }
            bar.show(
                done: records.reduce(0) { $0 + $1.bytesDone }, of: records.reduce(0) { $0 + ($1.bytesTotal ?? 0) },
                waiting: records.first { $0.state == .waiting }?.errorMessage)
            return records.allSatisfy { $0.state.isTerminal || $0.state == .paused } ? records : nil
        }
        bar.end()
        for record in ended where record.state != .completed {
            Output.note(
                "\(record.sourceName ?? "transfer \(record.id!)"): \(record.state.rawValue): \(record.errorMessage ?? "")")
        }
        guard ended.allSatisfy({ $0.state == .completed }) else { throw ExitCode(ExitStatus.unavailable.rawValue) }
        if !json { Output.line("Uploaded \(ended.count), \(Output.bytes(ended.reduce(0) { $0 + ($1.bytesTotal ?? 0) })).") }
    }
}
