import Spool
import BackgroundCommands
import BackgroundLedger
import BackgroundScheduling
import Foundation

/// The promises that the demo checks, and whether they were kept.
struct DemoClaims {
    private(set) var lines: [(claim: String, seen: String, held: Bool)] = []

    mutating func add(_ claim: String, _ held: Bool, seen: String = "") {
        lines.append((claim, seen, held))
        Output.line("   \(held ? "✓" : "✗") \(claim)" + (seen.isEmpty ? "" : "  (\(seen))"))
    }

    var allHeld: Bool { lines.allSatisfy(\.held) }
}

/// The demo, step by step: a forecast, a photo and a notification. Every step is a real process with a real server, and nothing
/// is simulated.
struct DemoStory {
    /// The time limit of a noon check in the demo, in seconds. The limit is short, so that the user does not wait long.
    static let budget = 2

    let home: ThrowawayHome
    let servers: DemoServers
    let evidence: URL?
    var claims = DemoClaims()
    /// `true` if a real notification is on the screen. The demo then waits a few seconds before it removes everything that it
    /// created.
    private(set) var isOnDesktop = false

    init(home: ThrowawayHome, servers: DemoServers, evidence: URL?) {
        self.home = home
        self.servers = servers
        self.evidence = evidence
    }

    mutating func run() async throws {
        let due = try scheduleCheck()
        try await wakeAndExpire(due: due)
        try handOver()
        try notify()
        try uploadPhoto()
    }

    // MARK: 1

    private mutating func scheduleCheck() throws -> Date {
        servers.serveSlowForecast(now: Date())
        Output.line(Output.bold("1. A daily check is due in a few seconds"))
        Output.line("   $ stormy place add \"Storm Bay\" -43.1,147.5")
        let began = Date()
        try home.stormy("place", "add", "Storm Bay", "-43.1,147.5", "--no-sync")
        // The time is in whole seconds and at least three seconds in the future, like a time that a user types. If a command
        // takes long, the time is further in the future. A time of day that has already passed would mean tomorrow.
        let lead = max(3, 5 * Date().timeIntervalSince(began))
        let due = Date(timeIntervalSince1970: (Date().timeIntervalSince1970 + lead).rounded(.up))
        let parts = Calendar.current.dateComponents([.hour, .minute, .second], from: due)
        let time = String(format: "%02d:%02d:%02d", parts.hour ?? 0, parts.minute ?? 0, parts.second ?? 0)
        Output.line("   $ stormy schedule --at \(time) --exact")
        let scheduled = try home.stormy("schedule", "--at", time, "--exact")
        claims.add("the check is scheduled, and an agent waits until the check is due", scheduled.status == 0)
        return due
    }

    // MARK: 2

    private mutating func wakeAndExpire(due: Date) async throws {
        Output.line(Output.bold("2. The agent launches the app; the weather service sends half of its response and stops"))
        try await servers.waitForWeatherRequest()
        let ended = try home.wait(15) { try $0.history(limit: 10).first { $0.kind == .appRefresh && $0.outcome != nil } }
        let delay = ended.map { $0.startedAt.timeIntervalSince(due) } ?? .infinity
        claims.add("the check was launched at the requested second", abs(delay) < 1.5, seen: String(format: "%.2f s late", delay))
        let spent = ended.flatMap { launch in launch.endedAt.map { $0.timeIntervalSince(launch.startedAt) } } ?? .infinity
        claims.add(
            // If the check ended too late, the agent would kill the process of the check, and the outcome would be different. The
            // seconds in the message only show how busy the machine is.
            "the check ended when its time limit was reached", ended?.outcome == .expired,
            seen: String(format: "%.1f s, budget %d s", spent, Self.budget))
        let next = try home.wait(5) { try $0.request("StormyNoon")?.occurrence }
        claims.add(
            "tomorrow's check is scheduled already", (next ?? .distantPast) > due, seen: next.map { Output.moment($0) } ?? "")
    }

    // MARK: 3

    private mutating func handOver() throws {
        Output.line(Output.bold("3. The agent continues the download; the service completes its response"))
        servers.finishForecast()
        // The demo's short time limit can end an app that has just started on a busy machine. If this happens, the agent delivers
        // the result again.
        let delivered = try home.wait(30) {
            try $0.history(limit: 10).first { $0.kind == .urlSession && $0.outcome == .completed }
        }
        let traffic = servers.weatherTraffic
        claims.add(
            "no byte was requested twice",
            traffic.requests == 1 && traffic.connections == 1 && traffic.finished == 1,
            seen: "\(traffic.requests) request on \(traffic.connections) connection")
        claims.add("the result of the download launched the app again", delivered != nil, seen: delivered?.detail ?? "")
    }

    // MARK: 4

    private mutating func notify() throws {
        Output.line(Output.bold("4. One notification is shown"))
        // The wait ends when the notification is shown, or when no server can show it.
        let notices = try home.wait(10) { transaction -> [NotificationRecord]? in
            let storms = try transaction.notifications().filter { $0.identifier.hasPrefix("storm-") }
            let isSettled = !storms.isEmpty && storms.allSatisfy { $0.deliveredAt != nil || $0.trouble != nil }
            return isSettled ? storms : nil
        }
        guard let notice = notices?.first else { return claims.add("one notification was shown", false) }
        if notice.deliveredAt == nil {
            draw(notice)
            claims.add("one notification was shown in this terminal", notices?.count == 1, seen: notice.trouble ?? "")
        } else {
            claims.add("one notification was shown on your desktop", notices?.count == 1, seen: notice.content.title)
            isOnDesktop = true
        }
        let jobs = try photoJobs(in: "awaitingPhoto")
        claims.add("one photo request waits for a photo", jobs == 1)
    }

    private func draw(_ notice: NotificationRecord) {
        let width = 58
        func row(_ text: String) -> String { "   │ " + text.padding(toLength: width, withPad: " ", startingAt: 0) + " │" }
        Output.line("   ╭" + String(repeating: "─", count: width + 2) + "╮")
        Output.line(row(notice.content.title))
        for line in Self.wrapped(notice.content.body, width) { Output.line(row(line)) }
        Output.line(row("[ Add photo… ]  [ Details ]  [ Snooze ]"))
        Output.line("   ╰" + String(repeating: "─", count: width + 2) + "╯")
    }

    private static func wrapped(_ text: String, _ width: Int) -> [String] {
        var lines = [""]
        for word in text.split(whereSeparator: { $0 == " " || $0 == "\n" }) {
            if lines[lines.count - 1].count + word.count + 1 > width { lines.append("") }
            lines[lines.count - 1] += (lines[lines.count - 1].isEmpty ? "" : " ") + word
        }
        return lines
    }

    // MARK: 5

    private mutating func uploadPhoto() throws {
        Output.line(Output.bold("5. A photo of the storm is uploaded and verified"))
        let bytes = DemoPhoto.bytes()
        let file = (evidence ?? home.folder).appendingPathComponent("storm.jpg")
        try bytes.write(to: file)
        Output.line("   $ stormy upload storm.jpg --wait")
        let result = try home.stormy("upload", file.path, "--wait")
        let received = servers.receivedPhoto("storm.jpg") ?? Data()
        let digest = FileDigest.sha256(of: received)
        claims.add(
            "the server has the complete photo, with its name",
            try result.status == 0 && sentDigest() == digest && DemoPhoto.pixels(of: received) == DemoPhoto.pixels(of: bytes)
                && servers.receivedFiles.count == 1,
            seen: "SHA-256 \(digest.prefix(12))…")
        claims.add(
            "the location of the photo was removed",
            DemoPhoto.isLocated(bytes) && !received.isEmpty && !DemoPhoto.isLocated(received),
            seen: "43.1° S, 147.5° E is in your file, but not in the uploaded file")
        claims.add("the photo request is fulfilled", try photoJobs(in: "awaitingPhoto") == 0)
    }

    private func photoJobs(in state: String) throws -> Int {
        try transfers().filter { $0["state"] as? String == state }.count
    }

    /// Returns the digest of the photo, as the receipt contains it.
    private func sentDigest() throws -> String? {
        try transfers().first { $0["kind"] as? String == "upload" && $0["state"] as? String == "completed" }?["sha256"] as? String
    }

    private func transfers() throws -> [[String: Any]] {
        let output = try home.stormy("transfers", "--json").output
        return try JSONSerialization.jsonObject(with: output) as? [[String: Any]] ?? []
    }
}
