import BackgroundCommands
import FaultyServer
import Foundation

/// An event during one kind of work, and the result that Stormy promises.
struct Scenario: Sendable {
    enum Work: String, Sendable, CaseIterable {
        case scheduled = "a check waits for noon"
        case check = "a check waits for its forecast"
        case handedOver = "the agent continues the download of a check"
        case download = "half of a file is stored"
        case upload = "half of a photo is sent"

        /// The text with which the names of the scenarios for this kind of work begin.
        var name: String {
            switch self {
            case .scheduled: "scheduled"
            case .check: "check"
            case .handedOver: "handed-over"
            case .download: "download"
            case .upload: "upload"
            }
        }

        /// The hour of the day at which the scenarios begin. Scenarios that wait for noon begin an hour before noon. Other
        /// scenarios begin some hours after noon.
        var hour: Int { self == .scheduled ? 11 : 15 }
    }

    let work: Work
    let cause: String
    /// The promise, in words for the user.
    let promise: String
    /// The possible results, word for word. There is more than one result if the result depends on timing.
    let expects: [String]
    /// The time limit of a check, in seconds.
    let budget: Int
    /// The time in seconds that a check has to end after its time limit.
    let grace: Int
    /// Causes the event while the work is in progress.
    let act: @Sendable (Rehearsal) throws -> Void
    /// Begins the work in a different way than other scenarios; `nil` if the scenario begins the work in the usual way.
    let begin: (@Sendable (Rehearsal) throws -> Void)?
    /// Returns an additional result at the end of the scenario.
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

    /// The name of the scenario, for example `check-agent-killed`.
    var name: String {
        let words = cause.lowercased().map { $0.isLetter || $0.isNumber ? $0 : " " }
        return work.name + "-" + String(words).split(separator: " ").joined(separator: "-")
    }

    struct Result: Sendable, Encodable {
        let scenario: String
        let promised: String
        /// The possible results. The actual result must be equal to one of these texts, word for word.
        let expected: [String]
        let seen: String
        let held: Bool
    }

    /// Runs the scenario. Blocks until the scenario has ended and everything is removed.
    ///
    /// - Parameter folder: The folder in which the temporary home is kept. `nil` if the home is removed at the end.
    /// - Throws: ``CommandFailure`` if the scenario cannot be set up. Such an error does not mean that a promise was broken.
    func play(on server: FaultyServer, keptIn folder: URL? = nil) throws -> (Result, FaultyServer) {
        let rehearsal = try Rehearsal(name, budget: budget, grace: grace, server: server, keptIn: folder)
        var seen: String
        do {
            seen = try result(rehearsal)
            if let also { seen += try "; " + also(rehearsal) }
        } catch {
            seen = (error as? CommandFailure)?.message ?? "\(error)"
        }
        // The waiting responses continue, because an open response would keep the agent running.
        rehearsal.continueResponses()
        defer { rehearsal.control.close() }
        if !rehearsal.home.finish() { seen += "; the agent of the scenario did not stop" }
        let result = Result(scenario: name, promised: promise, expected: expects, seen: seen, held: expects.contains(seen))
        return (result, rehearsal.server)
    }

    private func result(_ rehearsal: Rehearsal) throws -> String {
        try rehearsal.setClock(toHour: work.hour)
        if let begin {
            try begin(rehearsal)
        } else {
            switch work {
            case .scheduled: try rehearsal.beginSchedule()
            case .check: try rehearsal.beginCheck()
            case .handedOver: try rehearsal.beginHandedOverCheck()
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
    private static let once = "1 forecast request; 1 storm notification"
    /// The grace time in seconds for scenarios in which the check has to end by itself. The time is long enough for a busy
    /// machine.
    private static let patience = 10
    private static let twice = "2 forecast requests; 1 storm notification"

    static let checks: [Scenario] = [
        Scenario(
            .check, "nothing happens", promise: "The check receives the response and shows the storm.",
            expects: "check completed; \(once)"
        ) { $0.continueResponses() },
        Scenario(
            .check, "time runs out",
            promise:
                "The check ends within the grace time. "
                + "The download continues on the same connection, and a new launch receives the result.",
            expects: "check expired, delivery completed; \(once)", budget: 8, grace: patience
        ) {
            try $0.waitForExpiry()
            $0.continueResponses()
        },
        Scenario(
            .check, "ended by hand", promise: "The check ends in the same way as at its time limit.",
            expects: "check expired, delivery completed; \(once)", grace: patience
        ) {
            try $0.verb("simulate", "expire", "StormyNoon")
            try $0.waitForExpiry()
            $0.continueResponses()
        },
        Scenario(
            .check, "SIGTERM of the app",
            promise: "The check ends in the same way as at its time limit, because any SIGTERM calls the expiration handler.",
            expects: "check expired, delivery completed; \(once)", grace: patience
        ) {
            try $0.send(SIGTERM, to: .app)
            try $0.waitForExpiry()
            $0.continueResponses()
        },
        Scenario(
            .check, "kill -9 of the app", promise: "The check runs again and sends a new request.",
            expects: "check crashed, check completed; \(twice)"
        ) {
            try $0.send(SIGKILL, to: .app)
            _ = try $0.wait("the next check") { try $0.history(limit: 10).first { $0.generation == 2 } }
            $0.continueResponses()
        },
        Scenario(
            .check, "kill -9 of the agent",
            promise: "The next agent takes over the running check and requests the forecast again.",
            expects: "check completed; \(twice)"
        ) {
            try $0.replaceAgent(by: SIGKILL)
        },
        Scenario(
            .check, "kill -9 of both", promise: "The next agent runs the check again, with a new request.",
            expects: "check crashed, check completed; \(twice)",
            "check crashed, check completed; 3 forecast requests; 1 storm notification"
        ) {
            try $0.send(SIGKILL, to: .agent)
            try $0.send(SIGKILL, to: .app)
            $0.continueResponses()
            try $0.logIn()
        },
        Scenario(
            .check, "logout",
            promise:
                "The agent warns the check, and the check stops. After the next login, the forecast is requested again and delivered to the app.",
            expects: "check expired, delivery completed; \(twice)"
        ) {
            try $0.replaceAgent(by: SIGTERM)
        },
        Scenario(
            .check, "network cut", promise: "The agent tries the download again, and the check waits for the download.",
            expects: "check completed; \(twice)"
        ) {
            $0.serveWholeForecast(on: $0.server)
            $0.dropConnections()
        },
        Scenario(
            .check, "the server is not reachable",
            promise: "The check waits for the server and receives the response when the server is back.",
            expects: "check completed; \(once)"
        ) {
            try $0.replaceServer($0.serveWholeForecast)
        },
        Scenario(
            .check, "a captive portal responds",
            promise:
                "Stormy does not report calm weather without a forecast. The check runs again and shows the storm when a response arrives.",
            // The number of crashes depends on how often the agent repeats the check before the response arrives.
            expects: "check crashed, check completed; \(twice)",
            "check crashed, check crashed, check completed; 3 forecast requests; 1 storm notification",
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
            .check, "stormy quit",
            promise: "The agent warns the check, and the check stops. After this, no process runs and no request is sent.",
            expects: "check expired; 1 forecast request; 0 storm notifications"
        ) {
            try $0.verb("quit")
            try $0.waitForAgent()
        },
        Scenario(
            .handedOver, "nothing happens", promise: "The response launches the app, which shows the storm.",
            expects: "check expired, delivery completed; \(once)", grace: patience
        ) { $0.continueResponses() },
        Scenario(
            .handedOver, "kill -9 of the agent",
            promise: "The next agent sends the request again, because a response without a validator cannot be continued.",
            expects: "check expired, delivery completed; \(twice)"
        ) {
            try $0.replaceAgent(by: SIGKILL)
        },
        Scenario(
            .handedOver, "logout", promise: "After the next login, the forecast is requested again and delivered to the app.",
            expects: "check expired, delivery completed; \(twice)"
        ) {
            try $0.replaceAgent(by: SIGTERM)
        },
        Scenario(
            .handedOver, "network cut", promise: "The forecast is requested again and delivered to the app.",
            expects: "check expired, delivery completed; \(twice)"
        ) {
            $0.serveWholeForecast(on: $0.server)
            $0.dropConnections()
        },
        Scenario(
            .handedOver, "another check",
            promise:
                "The next check waits for the running download. The agent also delivers the result to a launch. The storm is shown once.",
            expects: "check expired, check completed, delivery completed; \(once)"
        ) {
            try $0.verb("simulate", "launch", "StormyNoon")
            _ = try $0.wait("the check that waits for the same download") { try $0.waiters().first }
            $0.continueResponses()
        },
        Scenario(
            .handedOver, "the place is removed", promise: "The response is delivered to the app, and no storm is shown.",
            expects: "check expired, delivery completed; 1 forecast request; 0 storm notifications"
        ) {
            try $0.verb("place", "remove", "Storm Bay")
            $0.continueResponses()
        },
    ]
}
