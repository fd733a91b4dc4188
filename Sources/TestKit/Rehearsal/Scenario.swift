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
