import BackgroundCommands
import FaultyServer
import Foundation

/// One thing that can happen while one kind of work is under way, and what is promised then.
struct Scenario: Sendable {
    enum Work: String, Sendable, CaseIterable {
        case scheduled = "the next noon is waited for"
        case check = "a check is waiting for its forecast"
        case handedOver = "a check has handed its download over"
        case download = "half of a file is here"
        case upload = "half of a photo is sent"

        /// What scenarios of it are called.
        var name: String {
            switch self {
            case .scheduled: "scheduled"
            case .check: "check"
            case .handedOver: "handed-over"
            case .download: "download"
            case .upload: "upload"
            }
        }

        /// The hour of the day at which they begin: an hour before noon where noon is awaited, and hours after it elsewhere.
        var hour: Int { self == .scheduled ? 11 : 15 }
    }

    let work: Work
    let cause: String
    /// For people.
    let promise: String
    /// What is to be seen, word for word; more than one where it depends on who is quicker.
    let expects: [String]
    /// Seconds of a check.
    let budget: Int
    /// Seconds that a check has to end when its time is up.
    let grace: Int
    /// Brings it about; the work itself is under way.
    let act: @Sendable (Rehearsal) throws -> Void
    /// Begins the work in another way than usual.
    let begin: (@Sendable (Rehearsal) throws -> Void)?
    /// What else is to be looked at when all is over.
    let also: (@Sendable (Rehearsal) throws -> String)?

    init(
        _ work: Work, _ cause: String, promise: String, expects: String..., budget: Int = 30, grace: Int = 1,
        begin: (@Sendable (Rehearsal) throws -> Void)? = nil, also: (@Sendable (Rehearsal) throws -> String)? = nil,
        act: @escaping @Sendable (Rehearsal) throws -> Void
    ) {
        (self.work, self.cause, self.promise, self.expects) = (work, cause, promise, expects)
        (self.budget, self.grace) = (budget, grace)
        (self.begin, self.also, self.act) = (begin, also, act)
    }

    /// `check-agent-killed`.
    var name: String {
        let words = cause.lowercased().map { $0.isLetter || $0.isNumber ? $0 : " " }
        return work.name + "-" + String(words).split(separator: " ").joined(separator: "-")
    }

    struct Result: Sendable, Encodable {
        let scenario: String
        let promised: String
        /// One of these has to be seen, word for word.
        let expected: [String]
        let seen: String
        let held: Bool
    }

    /// Blocks until it is over and everything of it is gone.
    ///
    /// - Parameter folder: where its home is kept; `nil`: nowhere.
    /// - Throws: ``CommandFailure`` when it cannot be set up, which says nothing of any promise.
    func play(on server: FaultyServer, keptIn folder: URL? = nil) throws -> (Result, FaultyServer) {
        let rehearsal = try Rehearsal(name, budget: budget, grace: grace, server: server, keptIn: folder)
        var seen: String
        do {
            seen = try look(rehearsal)
            if let also { seen += try "; " + also(rehearsal) }
        } catch {
            seen = (error as? CommandFailure)?.message ?? "\(error)"
        }
        // Whatever it waits for: nothing may keep the agent.
        rehearsal.go()
        defer { rehearsal.control.close() }
        if !rehearsal.home.leave() { seen += "; its agent did not stop" }
        let result = Result(scenario: name, promised: promise, expected: expects, seen: seen, held: expects.contains(seen))
        return (result, rehearsal.server)
    }

    private func look(_ rehearsal: Rehearsal) throws -> String {
        try rehearsal.setClock(toHour: work.hour)
        if let begin {
            try begin(rehearsal)
        } else {
            switch work {
            case .scheduled: try rehearsal.beginSchedule()
            case .check: try rehearsal.beginCheck()
            case .handedOver: try rehearsal.beginHandedOver()
            case .download:
                rehearsal.serveFile()
                try rehearsal.beginDownload()
            case .upload: try rehearsal.beginUpload()
            }
        }
        try act(rehearsal)
        return switch work {
        case .scheduled: try rehearsal.seenOfSchedule()
        case .check, .handedOver: try rehearsal.seenOfCheck()
        case .download: try rehearsal.seenOfDownload()
        case .upload: try rehearsal.seenOfUpload()
        }
    }
}

extension Scenario {
    private static let once = "1 request; 1 storm told"
    /// Seconds of grace where the check is to end by itself: also a busy machine has time for that.
    private static let patience = 10
    private static let twice = "2 requests; 1 storm told"

    static let checks: [Scenario] = [
        Scenario(
            .check, "nothing happens", promise: "The check takes its answer and tells of the storm.",
            expects: "check completed; \(once)"
        ) { $0.go() },
        Scenario(
            .check, "time runs out", promise: "It ends in time; its download goes on on its first connection and is delivered.",
            expects: "check expired, delivery completed; \(once)", budget: 2, grace: patience
        ) {
            try $0.waitForExpiry()
            $0.go()
        },
        Scenario(
            .check, "ended by hand", promise: "As when its time runs out.",
            expects: "check expired, delivery completed; \(once)", grace: patience
        ) {
            try $0.verb("simulate", "expire", "StormyNoon")
            try $0.waitForExpiry()
            $0.go()
        },
        Scenario(
            .check, "SIGTERM of the app", promise: "As when its time runs out: whoever sent it, the handler is told.",
            expects: "check expired, delivery completed; \(once)", grace: patience
        ) {
            try $0.send(SIGTERM, to: .app)
            try $0.waitForExpiry()
            $0.go()
        },
        Scenario(
            .check, "kill -9 of the app", promise: "The check is made up for, and asks again.",
            expects: "check crashed, check completed; \(twice)"
        ) {
            try $0.send(SIGKILL, to: .app)
            _ = try $0.wait("the next one") { try $0.history(limit: 10).first { $0.generation == 2 } }
            $0.go()
        },
        Scenario(
            .check, "kill -9 of the agent",
            promise: "The next agent takes over the living check and asks for the forecast again.",
            expects: "check completed; \(twice)"
        ) {
            try $0.replaceAgent(by: SIGKILL)
        },
        Scenario(
            .check, "kill -9 of both", promise: "The next agent makes up for the check, which asks again.",
            expects: "check crashed, check completed; \(twice)",
            "check crashed, check completed; 3 requests; 1 storm told"
        ) {
            try $0.send(SIGKILL, to: .agent)
            try $0.send(SIGKILL, to: .app)
            $0.go()
            try $0.logIn()
        },
        Scenario(
            .check, "logout",
            promise: "The check is told to stop; after the next login its forecast is asked for again, and delivered.",
            expects: "check expired, delivery completed; \(twice)"
        ) {
            try $0.replaceAgent(by: SIGTERM)
        },
        Scenario(
            .check, "network cut", promise: "The download is tried again; the check waits for it.",
            expects: "check completed; \(twice)"
        ) {
            $0.serveWholeForecast(on: $0.server)
            $0.dropConnections()
        },
        Scenario(
            .check, "server gone", promise: "It is waited for; the check takes the answer when the server is back.",
            expects: "check completed; 1 request; 1 storm told"
        ) {
            try $0.replaceServer($0.serveWholeForecast)
        },
        Scenario(
            .check, "a page of a log-in portal",
            promise: "No forecast is no calm: the check is made up for, and tells of the storm once there is an answer.",
            // As often as it is tried meanwhile.
            expects: "check crashed, check completed; \(twice)",
            "check crashed, check crashed, check completed; 3 requests; 1 storm told",
            begin: {
                $0.serveForecast(.status(200, headers: ["Content-Type": "text/html"], body: "<html>Pay here</html>"))
                try $0.launchCheck()
            }
        ) {
            try $0.waitForCheck(.crashed)
            $0.serveWholeForecast(on: $0.server)
            try $0.waitForCheck()
        },
        Scenario(
            .check, "all work is ended", promise: "The check is told to stop, and nothing runs or is asked for any more.",
            expects: "check expired; 1 request; 0 storms told"
        ) {
            try $0.verb("quit")
            try $0.look()
        },
        Scenario(
            .handedOver, "nothing happens", promise: "The answer launches the app, which tells of the storm.",
            expects: "check expired, delivery completed; \(once)", grace: patience
        ) { $0.go() },
        Scenario(
            .handedOver, "kill -9 of the agent",
            promise: "The next agent asks again, as half an answer without validator is of no use.",
            expects: "check expired, delivery completed; \(twice)"
        ) {
            try $0.replaceAgent(by: SIGKILL)
        },
        Scenario(
            .handedOver, "logout", promise: "After the next login it is asked for again, and delivered.",
            expects: "check expired, delivery completed; \(twice)"
        ) {
            try $0.replaceAgent(by: SIGTERM)
        },
        Scenario(
            .handedOver, "network cut", promise: "It is asked for again, and delivered.",
            expects: "check expired, delivery completed; \(twice)"
        ) {
            $0.serveWholeForecast(on: $0.server)
            $0.dropConnections()
        },
        Scenario(
            .handedOver, "another check",
            promise: "The next check joins the download that is under way, which is delivered as well; the storm is told once.",
            expects: "check expired, check completed, delivery completed; \(once)"
        ) {
            try $0.verb("simulate", "launch", "StormyNoon")
            _ = try $0.wait("its waiter") { try $0.waiters().first }
            $0.go()
        },
        Scenario(
            .handedOver, "the place is removed", promise: "Its answer is delivered and tells nothing.",
            expects: "check expired, delivery completed; 1 request; 0 storms told"
        ) {
            try $0.verb("place", "remove", "Storm Bay")
            $0.go()
        },
    ]
}
