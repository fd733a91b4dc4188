import BackgroundLedger
import FaultyServer
import Foundation

extension Scenario {
    private static let complete = "download completed; version one of the file is complete"
    private static let changed = "download completed; version two of the file is complete"
    static let sentOnce = "upload completed; storm.bmp on the server is complete; the photo was sent once"
    static let sentTwice = "upload completed; storm.bmp on the server is complete; the photo was sent twice"
    /// The requests that give a photo its final name.
    private static let named = "requests: temporary file sent, temporary file queried, temporary file renamed"

    static let downloads: [Scenario] = [
        Scenario(
            .download, "nothing happens", promise: "The file gets its final name only when the file is complete.",
            expects: "\(complete); the agent sent 1 request"
        ) { $0.continueResponses() },
        Scenario(
            .download, "kill -9 of the agent",
            promise: "The next agent continues the download after the bytes that are already on the disk.",
            expects: "\(complete); after the interruption the agent requested the missing bytes"
        ) {
            try $0.replaceAgent(by: SIGKILL)
        },
        Scenario(
            .download, "logout",
            promise: "After the next login, the download continues after the bytes that are already on the disk.",
            expects: "\(complete); after the interruption the agent requested the missing bytes"
        ) {
            try $0.replaceAgent(by: SIGTERM)
        },
        Scenario(
            .download, "network cut", promise: "The download continues after the bytes that are already on the disk.",
            expects: "\(complete); after the interruption the agent requested the missing bytes"
        ) { $0.dropConnections() },
        Scenario(
            .download, "the server is not reachable",
            promise: "The download waits for the server and continues after the bytes that are already on the disk.",
            expects: "\(complete); the agent requested the missing bytes from the new server"
        ) { try $0.replaceServer($0.serveWholeFile) },
        Scenario(
            .download, "the server changed the file",
            promise: "The download starts over, because two versions must not be mixed.",
            expects: "\(changed); after the interruption the agent requested the missing bytes",
            begin: {
                $0.serveFile(changes: true)
                try $0.beginDownload()
            }
        ) { $0.dropConnections() },
        Scenario(
            .download, "the server changed the file and kept its ETag",
            promise: "The agent refuses a 206 response with another version of the file, and the download starts over.",
            expects: "\(changed); after the interruption the agent requested the missing bytes, then the complete file",
            begin: {
                $0.serveFile(changes: true, fault: .ignoresIfRange)
                try $0.beginDownload()
            }
        ) { $0.dropConnections() },
        Scenario(
            .download, "no validator",
            promise: "The download starts over, because the rest of the file may belong to another version.",
            expects: "\(complete); after the interruption the agent requested the complete file",
            begin: {
                $0.serveFile(hasValidator: false)
                try $0.beginDownload()
            }
        ) { $0.dropConnections() },
        Scenario(
            .download, "the server sends a range that was not requested",
            promise: "The agent refuses a range that it did not request, and the download starts over.",
            expects: "\(complete); after the interruption the agent requested the missing bytes, then the complete file",
            begin: {
                $0.serveFile(fault: .shiftedStart(1))
                try $0.beginDownload()
            }
        ) { $0.dropConnections() },
        Scenario(
            .download, "the user expects another digest", promise: "The download fails, and no file gets the final name.",
            expects: "download failed; no file is stored; the agent sent 1 request",
            begin: {
                $0.serveFile()
                try $0.beginDownload("--sha256", String(repeating: "0", count: 64))
            }
        ) { $0.continueResponses() },
        Scenario(
            .download, "a certificate of an unknown authority",
            promise:
                "No request is sent, and no file gets the final name. The download waits for another network, and the user is notified once.",
            expects: "download waiting; no file is stored; the agent sent no request; the error names the certificate; "
                + "1 notification was shown",
            begin: { try $0.beginDownload(showing: .anotherAuthority) }, also: { try $0.seenOfDistrust() }
        ) { _ in },
        Scenario(
            .download, "paused and resumed", promise: "The download continues after the bytes that are already on the disk.",
            expects: "\(complete); after the interruption the agent requested the missing bytes"
        ) {
            try $0.verb("transfers", "pause", "all")
            try $0.verb("transfers", "resume", "all")
        },
        Scenario(
            .download, "cancelled", promise: "No file and no partial file is left on the disk.",
            expects: "download cancelled; no file is stored; the agent sent 1 request"
        ) { try $0.verb("transfers", "cancel", "all") },
        Scenario(
            .download, "stormy quit",
            promise: "The download keeps its partial file, and waits until the user resumes the download.",
            expects: "\(complete); after the interruption the agent requested the missing bytes"
        ) {
            try $0.verb("quit")
            try $0.checkPausedPart()
            try $0.verb("transfers", "resume", "all")
        },
    ]

    static let uploads: [Scenario] = [
        Scenario(
            .upload, "nothing happens",
            promise: "The photo gets its final name on the server when the upload is complete and checked.",
            expects: "\(sentOnce); \(named), photo queried",
            begin: { try $0.beginUpload(stalls: false) }, also: { $0.seenOfNaming() }
        ) { _ in },
        Scenario(
            .upload, "kill -9 of the agent",
            promise: "The next agent sends the photo again. The server has one copy of the photo.",
            expects: sentTwice
        ) {
            try $0.replaceAgent(by: SIGKILL)
        },
        Scenario(
            .upload, "logout", promise: "After the next login, the photo is sent again. The server has one copy of the photo.",
            expects: sentTwice
        ) {
            try $0.replaceAgent(by: SIGTERM)
        },
        Scenario(
            .upload, "network cut", promise: "The photo is sent again. The server has one copy of the photo.",
            expects: sentTwice
        ) { $0.dropConnections() },
        Scenario(
            .upload, "the server is not reachable",
            promise: "The upload waits for the server. The server has one copy of the photo.",
            expects: sentTwice
        ) { try $0.replaceServer { _ in } },
        Scenario(
            .upload, "the last response is lost",
            promise: "The agent checks whether the server has the photo. The server has one copy of the photo.",
            expects: "\(sentOnce); \(named) without a response, temporary file queried, photo queried, photo read",
            begin: {
                $0.photos.loseAnswers(to: "MOVE")
                try $0.beginUpload(stalls: false)
            }, also: { $0.seenOfNaming() }
        ) { _ in },
        Scenario(
            .upload, "a captive portal responds",
            promise:
                "The upload waits, and the user is notified once. When the captive portal does not respond any more, the photo is sent and stored once.",
            expects: "\(sentOnce); 1 notification was shown",
            begin: {
                $0.photos.refuse(status: 307, next: 1, headers: ["Location": "http://log-in.example/"])
                try $0.beginUpload(stalls: false)
                try $0.waitForSuspicion()
            }, also: { try $0.seenOfSuspicion() }
        ) { try $0.switchToWorkingNetwork() },
        Scenario(
            .upload, "the name is taken", promise: "The photo gets a name with a number, and the existing file is not replaced.",
            expects: "upload completed; storm-1.bmp on the server is complete, storm.bmp on the server belongs to another user; "
                + "the photo was sent once",
            begin: {
                try $0.claimName()
                try $0.beginUpload(stalls: false)
            }
        ) { _ in },
        Scenario(
            .upload, "the original is deleted", promise: "The agent sends the copy that was made when the photo was queued.",
            expects: sentTwice
        ) {
            try $0.deleteOriginal()
            $0.dropConnections()
        },
        Scenario(
            .upload, "the same photo is uploaded again", promise: "The photo is not uploaded a second time.",
            expects: sentTwice
        ) {
            try $0.beginUpload(stalls: false)
            $0.dropConnections()
        },
        Scenario(
            .upload, "the server refuses the credentials",
            promise: "The upload fails with the reason. The photo and the queued copy are kept for a retry.",
            expects: "upload failed; no file is on the server; the photo was not sent; the error names the password; "
                + "the photo and its copy are kept",
            begin: {
                $0.photos.refuse(status: 401, next: 100)
                try $0.beginUpload(stalls: false)
            }, also: { try $0.seenOfRefusal() }
        ) { _ in },
        Scenario(
            .upload, "cancelled", promise: "No part of the photo is left on the server.",
            expects: "upload cancelled; no file is on the server; the photo was sent once"
        ) { rehearsal in
            try rehearsal.verb("transfers", "cancel", "all")
            // The agent deletes the hidden temporary file on the server.
            try rehearsal.waitForEndedRequest("DELETE")
        },
        Scenario(
            .upload, "paused and resumed", promise: "The photo is sent again. The server has one copy of the photo.",
            expects: sentTwice
        ) {
            try $0.verb("transfers", "pause", "all")
            try $0.verb("transfers", "resume", "all")
        },
        Scenario(
            .upload, "stormy quit",
            promise:
                "The upload waits until the user resumes the upload. After the upload, the server has one copy of the photo.",
            expects: sentTwice
        ) {
            try $0.verb("quit")
            try $0.checkAllPaused()
            try $0.verb("transfers", "resume", "all")
        },
        Scenario(
            .upload, "one of several photos is held back",
            promise: "The other photos are sent. The command `transfers` lists the held photo, and the exit code is 77.",
            expects: "\(sentOnce); 1 photo held",
            begin: {
                try $0.makeHeldPhoto("first.bmp")
                try $0.beginUpload(behind: "first.bmp", ending: .notPermitted)
            }, also: { try $0.seenOfHeld() }
        ) { _ in },
        Scenario(
            .upload, "one of several photos cannot be read", promise: "The other photos are sent, and the exit code is 74.",
            expects: sentOnce,
            begin: {
                try $0.makeUnreadablePhoto("first.jpg")
                try $0.beginUpload(behind: "first.jpg", ending: .inputOutput)
            }
        ) { _ in },
        Scenario(
            .upload, "one of several photos is missing", promise: "The other photos are sent, and the exit code is 66.",
            expects: sentOnce,
            begin: { try $0.beginUpload(behind: "first.jpg", ending: .notFound) }
        ) { _ in },
        Scenario(
            .upload, "uploaded again before the app has the result",
            promise: "An ended upload stays in the list until its result is delivered, so the photo is not sent again.",
            expects: sentTwice
        ) {
            let mend = try $0.spoilConfiguration()
            $0.dropConnections()
            try $0.waitForLostDelivery()
            try mend()
            try $0.beginUpload(stalls: false)
        },
    ]

    static let all = (schedules + checks + downloads + uploads + machines).sorted { one, other in
        let order = Work.allCases
        return order.firstIndex(of: one.work)! < order.firstIndex(of: other.work)!
    }
}
