import BackgroundLedger
import FaultyServer
import Foundation

extension Scenario {
    static let downloads: [Scenario] = [
        Scenario(
            .download, "nothing happens", promise: "The file gets its final name only when the file is complete.",
            expects: "completed; version one, complete; 1 request"
        ) { $0.continueResponses() },
        Scenario(
            .download, "kill -9 of the agent",
            promise: "The next agent continues the download after the bytes that are stored durably.",
            expects: "completed; version one, complete; then requested the rest"
        ) {
            try $0.replaceAgent(by: SIGKILL)
        },
        Scenario(
            .download, "logout", promise: "After the next login the download continues after the bytes that are stored durably.",
            expects: "completed; version one, complete; then requested the rest"
        ) {
            try $0.replaceAgent(by: SIGTERM)
        },
        Scenario(
            .download, "network cut", promise: "The download continues after the bytes that are stored durably.",
            expects: "completed; version one, complete; then requested the rest"
        ) { $0.dropConnections() },
        Scenario(
            .download, "server not reachable",
            promise: "The download waits for the server and continues after the bytes that are stored durably.",
            expects: "completed; version one, complete; from the new server the rest"
        ) { try $0.replaceServer($0.serveWholeFile) },
        Scenario(
            .download, "server changed the file", promise: "The download starts over, because two versions must not be mixed.",
            expects: "completed; version two, complete; then requested the rest",
            begin: {
                $0.serveFile(changes: true)
                try $0.beginDownload()
            }
        ) { $0.dropConnections() },
        Scenario(
            .download, "server changed the file and kept its ETag",
            promise: "The agent refuses a response 206 of another version, and the download starts over.",
            expects: "completed; version two, complete; then requested the rest, the whole",
            begin: {
                $0.serveFile(changes: true, fault: .ignoresIfRange)
                try $0.beginDownload()
            }
        ) { $0.dropConnections() },
        Scenario(
            .download, "no validator",
            promise: "The download starts over, because the rest of the file may belong to another version.",
            expects: "completed; version one, complete; then requested the whole",
            begin: {
                $0.serveFile(hasValidator: false)
                try $0.beginDownload()
            }
        ) { $0.dropConnections() },
        Scenario(
            .download, "the rest has another offset",
            promise: "The agent refuses a range that it did not request, and the download starts over.",
            expects: "completed; version one, complete; then requested the rest, the whole",
            begin: {
                $0.serveFile(fault: .shiftedStart(1))
                try $0.beginDownload()
            }
        ) { $0.dropConnections() },
        Scenario(
            .download, "another digest was requested", promise: "The download fails, and no file gets the final name.",
            expects: "failed; no file; 1 request",
            begin: {
                $0.serveFile()
                try $0.beginDownload("--sha256", String(repeating: "0", count: 64))
            }
        ) { $0.continueResponses() },
        Scenario(
            .download, "a certificate of an unknown authority",
            promise:
                "No request is sent, and no file gets the final name. The download waits for another network, and the user is notified once.",
            expects: "waiting; no file; no request; names the certificate; 1 notification",
            begin: { try $0.beginDownload(showing: .anotherAuthority) }, also: { try $0.seenOfDistrust() }
        ) { _ in },
        Scenario(
            .download, "paused and resumed", promise: "The download continues after the bytes that are stored durably.",
            expects: "completed; version one, complete; then requested the rest"
        ) {
            try $0.verb("transfers", "pause", "all")
            try $0.verb("transfers", "resume", "all")
        },
        Scenario(
            .download, "cancelled", promise: "No file and no partial file is left on the disk.",
            expects: "cancelled; no file; 1 request"
        ) { try $0.verb("transfers", "cancel", "all") },
        Scenario(
            .download, "stormy quit",
            promise: "The download keeps its partial file, and waits until the user resumes the download.",
            expects: "completed; version one, complete; then requested the rest"
        ) {
            try $0.verb("quit")
            try $0.checkPausedPart()
            try $0.verb("transfers", "resume", "all")
        },
    ]

    static let uploads: [Scenario] = [
        Scenario(
            .upload, "nothing happens",
            promise: "The photo gets its final name on the server after the upload is complete and checked.",
            expects: "completed; storm.bmp complete; sent once; part sent, part queried, part renamed, photo queried",
            begin: { try $0.beginUpload(stalls: false) }, also: { $0.seenOfNaming() }
        ) { _ in },
        Scenario(
            .upload, "kill -9 of the agent", promise: "The next agent sends the photo again. The server has the photo once.",
            expects: "completed; storm.bmp complete; sent twice"
        ) {
            try $0.replaceAgent(by: SIGKILL)
        },
        Scenario(
            .upload, "logout", promise: "After the next login the photo is sent again. The server has the photo once.",
            expects: "completed; storm.bmp complete; sent twice"
        ) {
            try $0.replaceAgent(by: SIGTERM)
        },
        Scenario(
            .upload, "network cut", promise: "The photo is sent again. The server has the photo once.",
            expects: "completed; storm.bmp complete; sent twice"
        ) { $0.dropConnections() },
        Scenario(
            .upload, "server not reachable", promise: "The upload waits for the server. The server has the photo once.",
            expects: "completed; storm.bmp complete; sent twice"
        ) { try $0.replaceServer { _ in } },
        Scenario(
            .upload, "the last response is lost",
            promise: "The agent checks whether the server has the photo. The server has the photo once.",
            expects: "completed; storm.bmp complete; sent once; part sent, part queried, part renamed without a response, "
                + "part queried, photo queried, GET of the photo",
            begin: {
                $0.photos.loseAnswers(to: "MOVE")
                try $0.beginUpload(stalls: false)
            }, also: { $0.seenOfNaming() }
        ) { _ in },
        Scenario(
            .upload, "a captive portal responds",
            promise:
                "The upload waits, and the user is notified once. When the captive portal does not respond any more, the photo is sent and stored once.",
            expects: "completed; storm.bmp complete; sent once; 1 notification",
            begin: {
                $0.photos.refuse(status: 307, next: 1, headers: ["Location": "http://log-in.example/"])
                try $0.beginUpload(stalls: false)
                try $0.waitForSuspicion()
            }, also: { try $0.seenOfSuspicion() }
        ) { try $0.switchToWorkingNetwork() },
        Scenario(
            .upload, "the name is taken", promise: "The photo gets a name with a number, and the existing file is not replaced.",
            expects: "completed; storm-1.bmp complete, storm.bmp another's; sent once",
            begin: {
                try $0.claimName()
                try $0.beginUpload(stalls: false)
            }
        ) { _ in },
        Scenario(
            .upload, "the original is deleted", promise: "The agent sends the copy that was made when the photo was queued.",
            expects: "completed; storm.bmp complete; sent twice"
        ) {
            try $0.deleteOriginal()
            $0.dropConnections()
        },
        Scenario(
            .upload, "named a second time", promise: "The photo is not uploaded a second time.",
            expects: "completed; storm.bmp complete; sent twice"
        ) {
            try $0.beginUpload(stalls: false)
            $0.dropConnections()
        },
        Scenario(
            .upload, "server refuses the credentials",
            promise: "The upload fails with the reason. The photo and the queued copy are kept for a retry.",
            expects: "failed; nothing there; not sent; names the password; photo and copy are here",
            begin: {
                $0.photos.refuse(status: 401, next: 100)
                try $0.beginUpload(stalls: false)
            }, also: { try $0.seenOfRefusal() }
        ) { _ in },
        Scenario(
            .upload, "cancelled", promise: "No part of the photo is left on the server.",
            expects: "cancelled; nothing there; sent once"
        ) { rehearsal in
            try rehearsal.verb("transfers", "cancel", "all")
            // The agent deletes the hidden temporary file on the server.
            try rehearsal.waitForEndedRequest("DELETE")
        },
        Scenario(
            .upload, "paused and resumed", promise: "The photo is sent again. The server has the photo once.",
            expects: "completed; storm.bmp complete; sent twice"
        ) {
            try $0.verb("transfers", "pause", "all")
            try $0.verb("transfers", "resume", "all")
        },
        Scenario(
            .upload, "stormy quit",
            promise: "The upload waits until the user resumes the upload. Then the server has the photo once.",
            expects: "completed; storm.bmp complete; sent twice"
        ) {
            try $0.verb("quit")
            try $0.checkAllPaused()
            try $0.verb("transfers", "resume", "all")
        },
        Scenario(
            .upload, "one of several photos is held back",
            promise: "The other photos are sent. `transfers` lists this photo as held, and the exit code is 77.",
            expects: "completed; storm.bmp complete; sent once; 1 held",
            begin: {
                try $0.makeHeldPhoto("first.bmp")
                try $0.beginUpload(behind: "first.bmp", ending: .notPermitted)
            }, also: { try $0.seenOfHeld() }
        ) { _ in },
        Scenario(
            .upload, "one of several photos cannot be read", promise: "The other photos are sent, and the exit code is 74.",
            expects: "completed; storm.bmp complete; sent once",
            begin: {
                try $0.makeUnreadablePhoto("first.jpg")
                try $0.beginUpload(behind: "first.jpg", ending: .inputOutput)
            }
        ) { _ in },
        Scenario(
            .upload, "one of several photos is missing", promise: "The other photos are sent, and the exit code is 66.",
            expects: "completed; storm.bmp complete; sent once",
            begin: { try $0.beginUpload(behind: "first.jpg", ending: .notFound) }
        ) { _ in },
        Scenario(
            .upload, "named again before the app received its end",
            promise: "An ended upload stays in the list until its result is delivered, so the photo is not sent again.",
            expects: "completed; storm.bmp complete; sent twice"
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
