import BackgroundRuntime
import BackgroundTransfer
import Foundation
import ProcessSupport

/// A trial of a destination. The trial uploads a small picture through the agent, and then removes the picture from the server.
package struct DestinationTrial: Sendable {
    /// The session of the trials. The app is not launched for the ends of its transfers.
    package static let sessionIdentifier = "StormyTrials"

    package enum Finding: Equatable, Sendable {
        /// The server stored the picture.
        case works(UploadRemoval, address: String)
        /// A trial would do harm. The text contains the reason.
        case cannotBeTried(String)
        /// The upload failed or waits. The text contains the reason.
        case fails(String)
    }

    private var destination: PhotoDestination

    package init(_ destination: PhotoDestination) {
        self.destination = destination
        // A destination is also tried before it is written to the configuration.
        self.destination.way.server?.requiredLines = nil
    }

    /// Tries the destination. The trial ends at the first problem, and after a minute at the latest.
    ///
    /// - Throws: an error if the picture could not be queued, or if no agent can be started.
    package func run() async throws -> Finding {
        if destination.isForOneFile {
            return .cannotBeTried("the address is for a single file, and a test picture would replace this file")
        }
        let turn: SessionTurn
        do { turn = try SessionTurn(Self.sessionIdentifier) } catch let error as SessionTurn.NoAgent {
            return .fails(error.description)
        }
        defer { turn.end() }
        let (session, number) = try queue()
        defer { session.finishTasksAndInvalidate() }
        let status = try await end(of: number)
        guard status.state == .completed else {
            try BackgroundTransfers.perform(.cancel, on: .ids([number]))
            return .fails(status.trouble?.message ?? "the upload did not begin within a minute")
        }
        let removal = try await UploadedFile.remove(number, credential: destination.asCredential)
        return .works(removal, address: status.receipt?.url ?? destination.url.absoluteString)
    }

    /// - Returns: The session of the upload, and the number of its transfer.
    private func queue() throws -> (URLSession, Int64) {
        let mark = String(UUID.random().uuidString.prefix(8)).lowercased()
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("stormy-test-\(mark).jpg")
        try Self.picture(mark).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let configuration = URLSessionConfiguration.background(withIdentifier: Self.sessionIdentifier)
        configuration.timeoutIntervalForResource = 60
        configuration.sessionSendsLaunchEvents = false
        let delegate = Receiver()
        let session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
        let task = session.uploadTask(with: PhotoUploads.request(to: destination), fromFile: file)
        task.isRefusalRead = true
        task.delivery = UploadDelivery(destination.way, fileName: file.lastPathComponent, contentType: "image/jpeg")
        task.resume()
        guard let number = task.transferNumber else {
            throw PhotoUploadError.cannotRead(path: file.path, reason: task.error?.localizedDescription ?? "not queued")
        }
        return (session, number)
    }

    /// A delegate, because the end of a task without a delegate would stay undelivered.
    private final class Receiver: NSObject, URLSessionTaskDelegate {}

    /// Waits until the transfer has ended or waits because of a problem.
    private func end(of number: Int64) async throws -> BackgroundTransferStatus {
        let waits = AsyncStream.makeStream(of: Void.self)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                _ = try await BackgroundTransfers.follow([number]) { tally in
                    if tally.waitingMessage != nil { waits.continuation.yield() }
                }
            }
            group.addTask { for await _ in waits.stream { return } }
            // The agent enforces the limit of a minute. If the agent makes no progress, this task ends the trial.
            group.addTask { try await Task.sleep(for: .seconds(75)) }
            try await group.next()
            group.cancelAll()
        }
        guard let status = try BackgroundTransfers.statuses(of: [number]).first else {
            throw PhotoUploadError.cannotRead(path: destination.name, reason: "the upload was removed")
        }
        return status
    }

    /// Returns a JPEG picture of 64 pixels with a comment, so that each trial sends another file. Some servers accept each file
    /// only once.
    private static func picture(_ comment: String) -> Data {
        var picture = Data(base64Encoded: pixels) ?? Data()
        let text = Data("A trial of an upload destination, \(comment). This file can be removed.".utf8)
        picture.insert(contentsOf: [0xFF, 0xFE, 0, UInt8(text.count + 2)] + text, at: 2)
        return picture
    }

    private static let pixels = """
        /9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZGNywtQFdBRkxOUlNSMj5aYV\
        pQYEpRUk//2wBDAQ4ODhMREyYVFSZPNS01T09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT0//wAARCAAI\
        AAgDAREAAhEBAxEB/8QAFAABAAAAAAAAAAAAAAAAAAAABv/EABQQAQAAAAAAAAAAAAAAAAAAAAD/xAAVAQEBAAAAAAAAAAAAAAAAAAAEBf/EAB\
        QRAQAAAAAAAAAAAAAAAAAAAAD/2gAMAwEAAhEDEQA/AEp6S//Z
        """
}
