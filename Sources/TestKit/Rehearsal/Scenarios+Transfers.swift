import BackgroundLedger
import FaultyServer
import Foundation

extension Scenario {
    static let downloads: [Scenario] = [
        Scenario(
            .download, "nothing happens", promise: "The file gets its name when it is whole, not before.",
            expects: "completed; version one, whole; asked once"
        ) { $0.go() },
        Scenario(
            .download, "kill -9 of the agent", promise: "The next one goes on behind what is durable.",
            expects: "completed; version one, whole; then asked for the rest"
        ) {
            try $0.replaceAgent(by: SIGKILL)
        },
        Scenario(
            .download, "logout", promise: "After the next login it goes on behind what is durable.",
            expects: "completed; version one, whole; then asked for the rest"
        ) {
            try $0.replaceAgent(by: SIGTERM)
        },
        Scenario(
            .download, "network cut", promise: "It goes on behind what is durable.",
            expects: "completed; version one, whole; then asked for the rest"
        ) { $0.dropConnections() },
        Scenario(
            .download, "server gone", promise: "It is waited for, and goes on behind what is durable.",
            expects: "completed; version one, whole; the new server asked for the rest"
        ) { try $0.replaceServer($0.serveWholeFile) },
        Scenario(
            .download, "server changed the file", promise: "Two versions are never spliced: it starts over.",
            expects: "completed; version two, whole; then asked for the rest",
            begin: {
                $0.serveFile(changes: true)
                try $0.beginDownload()
            }
        ) { $0.dropConnections() },
        Scenario(
            .download, "server changed the file and says not so",
            promise: "A 206 of another version is not taken: it starts over.",
            expects: "completed; version two, whole; then asked for the rest, the whole",
            begin: {
                $0.serveFile(changes: true, fault: .ignoresIfRange)
                try $0.beginDownload()
            }
        ) { $0.dropConnections() },
        Scenario(
            .download, "no validator", promise: "Nobody could say that the rest belongs to it: it starts over.",
            expects: "completed; version one, whole; then asked for the whole",
            begin: {
                $0.serveFile(hasValidator: false)
                try $0.beginDownload()
            }
        ) { $0.dropConnections() },
        Scenario(
            .download, "the rest begins elsewhere", promise: "A range that was not asked for is not taken: it starts over.",
            expects: "completed; version one, whole; then asked for the rest, the whole",
            begin: {
                $0.serveFile(fault: .shiftedStart(1))
                try $0.beginDownload()
            }
        ) { $0.dropConnections() },
        Scenario(
            .download, "another digest was asked for", promise: "It fails, and nothing gets the name.",
            expects: "failed; no file; asked once",
            begin: {
                $0.serveFile()
                try $0.beginDownload("--sha256", String(repeating: "0", count: 64))
            }
        ) { $0.go() },
        Scenario(
            .download, "a certificate that nobody vouches for",
            promise: "The server is asked nothing, and nothing gets the name; it waits for another network, and says so once.",
            expects: "waiting; no file; never asked; names the certificate; told once",
            begin: { try $0.beginDownload(showing: .anotherAuthority) }, also: { try $0.seenOfDistrust() }
        ) { _ in },
        Scenario(
            .download, "paused and resumed", promise: "It goes on behind what is durable.",
            expects: "completed; version one, whole; then asked for the rest"
        ) {
            try $0.verb("transfers", "pause", "all")
            try $0.verb("transfers", "resume", "all")
        },
        Scenario(
            .download, "cancelled", promise: "Neither a file nor a part stays.", expects: "cancelled; no file; asked once"
        ) { try $0.verb("transfers", "cancel", "all") },
        Scenario(
            .download, "all work is ended", promise: "It waits with its part until it is resumed.",
            expects: "completed; version one, whole; then asked for the rest"
        ) {
            try $0.verb("quit")
            try $0.lookForPausedPart()
            try $0.verb("transfers", "resume", "all")
        },
    ]

    static let uploads: [Scenario] = [
        Scenario(
            .upload, "nothing happens", promise: "The photo gets its name when it is whole and was looked at.",
            expects: "completed; storm.bmp whole; sent once; part sent, part looked at, part named, photo looked at",
            begin: { try $0.beginUpload(stalls: false) }, also: { $0.seenOfNaming() }
        ) { _ in },
        Scenario(
            .upload, "kill -9 of the agent", promise: "The next one sends it again; it is there once.",
            expects: "completed; storm.bmp whole; sent twice"
        ) {
            try $0.replaceAgent(by: SIGKILL)
        },
        Scenario(
            .upload, "logout", promise: "After the next login it is sent again; it is there once.",
            expects: "completed; storm.bmp whole; sent twice"
        ) {
            try $0.replaceAgent(by: SIGTERM)
        },
        Scenario(
            .upload, "network cut", promise: "It is sent again; it is there once.",
            expects: "completed; storm.bmp whole; sent twice"
        ) { $0.dropConnections() },
        Scenario(
            .upload, "server gone", promise: "It is waited for; the photo is there once.",
            expects: "completed; storm.bmp whole; sent twice"
        ) { try $0.replaceServer { _ in } },
        Scenario(
            .upload, "the last answer is lost", promise: "The server is asked what it did; the photo is there once.",
            expects: "completed; storm.bmp whole; sent once; part sent, part looked at, part named without an answer, "
                + "part looked at, photo looked at, GET of the photo",
            begin: {
                $0.photos.loseAnswers(to: "MOVE")
                try $0.beginUpload(stalls: false)
            }, also: { $0.seenOfNaming() }
        ) { _ in },
        Scenario(
            .upload, "a log-in page answers",
            promise: "It waits, and says so once; on the right network it is sent, and is there once.",
            expects: "completed; storm.bmp whole; sent once; told once",
            begin: {
                $0.photos.refuse(status: 307, next: 1, headers: ["Location": "http://log-in.example/"])
                try $0.beginUpload(stalls: false)
                try $0.waitForSuspicion()
            }, also: { try $0.seenOfSuspicion() }
        ) { try $0.comeToTheRightNetwork() },
        Scenario(
            .upload, "the name is taken", promise: "Nobody's file is replaced: the photo gets a number.",
            expects: "completed; storm-1.bmp whole, storm.bmp another's; sent once",
            begin: {
                try $0.takeName()
                try $0.beginUpload(stalls: false)
            }
        ) { _ in },
        Scenario(
            .upload, "the original is deleted", promise: "What was queued is sent.",
            expects: "completed; storm.bmp whole; sent twice"
        ) {
            try $0.deleteOriginal()
            $0.dropConnections()
        },
        Scenario(
            .upload, "given again", promise: "The same photo is the same upload.",
            expects: "completed; storm.bmp whole; sent twice"
        ) {
            try $0.beginUpload(stalls: false)
            $0.dropConnections()
        },
        Scenario(
            .upload, "server refuses the credentials",
            promise: "It fails with the reason; the photo stays, and a copy for another try.",
            expects: "failed; nothing there; not sent; names the password; photo and copy are here",
            begin: {
                $0.photos.refuse(status: 401, next: 100)
                try $0.beginUpload(stalls: false)
            }, also: { try $0.seenOfRefusal() }
        ) { _ in },
        Scenario(
            .upload, "cancelled", promise: "Nothing of it stays on the server.",
            expects: "cancelled; nothing there; sent once"
        ) { rehearsal in
            try rehearsal.verb("transfers", "cancel", "all")
            // Its hidden part is taken off the server.
            try rehearsal.waitForEndedRequest("DELETE")
        },
        Scenario(
            .upload, "paused and resumed", promise: "It is sent again; it is there once.",
            expects: "completed; storm.bmp whole; sent twice"
        ) {
            try $0.verb("transfers", "pause", "all")
            try $0.verb("transfers", "resume", "all")
        },
        Scenario(
            .upload, "all work is ended", promise: "It waits until it is resumed; then it is there once.",
            expects: "completed; storm.bmp whole; sent twice"
        ) {
            try $0.verb("quit")
            try $0.lookForPause()
            try $0.verb("transfers", "resume", "all")
        },
        Scenario(
            .upload, "one of several photos is held back",
            promise: "The others are sent, `transfers` lists it as held, and the exit code is 77.",
            expects: "completed; storm.bmp whole; sent once; 1 held",
            begin: {
                try $0.makeHeldPhoto("first.bmp")
                try $0.beginUpload(behind: "first.bmp", ending: .notPermitted)
            }, also: { try $0.seenOfHeld() }
        ) { _ in },
        Scenario(
            .upload, "one of several photos cannot be read", promise: "The others are sent, and the exit code is 74.",
            expects: "completed; storm.bmp whole; sent once",
            begin: {
                try $0.makeUnreadablePhoto("first.jpg")
                try $0.beginUpload(behind: "first.jpg", ending: .inputOutput)
            }
        ) { _ in },
        Scenario(
            .upload, "one of several photos is missing", promise: "The others are sent, and the exit code is 66.",
            expects: "completed; storm.bmp whole; sent once",
            begin: { try $0.beginUpload(behind: "first.jpg", ending: .notFound) }
        ) { _ in },
        Scenario(
            .upload, "given again before the app heard of its end",
            promise: "An upload that ended is known until its app was told: it is not sent again.",
            expects: "completed; storm.bmp whole; sent twice"
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
