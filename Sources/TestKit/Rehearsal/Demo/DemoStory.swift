import Spool
import BackgroundCommands
import BackgroundLedger
import BackgroundScheduling
import Foundation

/// What the demo promises, and whether it held.
struct DemoClaims {
    private(set) var lines: [(claim: String, seen: String, held: Bool)] = []

    mutating func add(_ claim: String, _ held: Bool, seen: String = "") {
        lines.append((claim, seen, held))
        Output.line("   \(held ? "✓" : "✗") \(claim)" + (seen.isEmpty ? "" : "  (\(seen))"))
    }

    var allHeld: Bool { lines.allSatisfy(\.held) }
}

/// The main job, told as it happens. Every step is a real process against a real server; nothing is pretended.
struct DemoStory {
    /// Seconds a noon check gets in the demo, so that nobody waits half a minute for it to run out.
    static let budget = 2

    let home: ThrowawayHome
    let servers: DemoServers
    let evidence: URL?
    var claims = DemoClaims()
    /// A real notification is on the screen: worth a few seconds to look at it before everything is taken away.
    private(set) var isOnDesktop = false

    init(home: ThrowawayHome, servers: DemoServers, evidence: URL?) {
        self.home = home
        self.servers = servers
        self.evidence = evidence
    }

    mutating func tell() async throws {
        let due = try scheduleCheck()
        try await wakeAndExpire(due: due)
        try handOver()
        try notify()
        try uploadPhoto()
    }

    // MARK: 1

    private mutating func scheduleCheck() throws -> Date {
        servers.serveSlowForecast(now: Date())
        Output.line(Output.bold("1. A daily check, a few seconds from now"))
        Output.line("   $ stormy place add \"Storm Bay\" -43.1,147.5")
        let began = Date()
        try home.stormy("place", "add", "Storm Bay", "-43.1,147.5", "--no-sync")
        // Whole seconds, three ahead, as a person would type it; more where a verb takes long: what has passed is tomorrow's.
        let lead = max(3, 5 * Date().timeIntervalSince(began))
        let due = Date(timeIntervalSince1970: (Date().timeIntervalSince1970 + lead).rounded(.up))
        let parts = Calendar.current.dateComponents([.hour, .minute, .second], from: due)
        let time = String(format: "%02d:%02d:%02d", parts.hour ?? 0, parts.minute ?? 0, parts.second ?? 0)
        Output.line("   $ stormy schedule --at \(time) --exact")
        let scheduled = try home.stormy("schedule", "--at", time, "--exact")
        claims.add("the check is scheduled and an agent waits for it", scheduled.status == 0)
        return due
    }

    // MARK: 2

    private mutating func wakeAndExpire(due: Date) async throws {
        Output.line(Output.bold("2. The agent wakes the app; the weather service answers half and hangs"))
        try await servers.waitForWeatherRequest()
        let ended = try home.wait(15) { try $0.history(limit: 10).first { $0.kind == .appRefresh && $0.outcome != nil } }
        let delay = ended.map { $0.startedAt.timeIntervalSince(due) } ?? .infinity
        claims.add("woken at the second it asked for", abs(delay) < 1.5, seen: String(format: "%.2f s late", delay))
        let spent = ended.flatMap { launch in launch.endedAt.map { $0.timeIntervalSince(launch.startedAt) } } ?? .infinity
        claims.add(
            // Later it would have been killed, and that is another outcome: seconds say how busy the machine is.
            "its time ran out, it ended in time", ended?.outcome == .expired,
            seen: String(format: "%.1f s, budget %d s", spent, Self.budget))
        let next = try home.wait(5) { try $0.request("StormyNoon")?.occurrence }
        claims.add("tomorrow's check stands already", (next ?? .distantPast) > due, seen: next.map { Output.moment($0) } ?? "")
    }

    // MARK: 3

    private mutating func handOver() throws {
        Output.line(Output.bold("3. The download lives on in the agent; now the service finishes"))
        servers.finishForecast()
        // On a busy machine the demo's short budget ends an app that has barely started: then the agent delivers again.
        let delivered = try home.wait(30) {
            try $0.history(limit: 10).first { $0.kind == .urlSession && $0.outcome == .completed }
        }
        let traffic = servers.weatherTraffic
        claims.add(
            "not a byte was asked for twice",
            traffic.requests == 1 && traffic.connections == 1 && traffic.finished == 1,
            seen: "\(traffic.requests) request on \(traffic.connections) connection")
        claims.add("its result launched the app again", delivered != nil, seen: delivered?.detail ?? "")
    }

    // MARK: 4

    private mutating func notify() throws {
        Output.line(Output.bold("4. The person is told, once"))
        // Shown, or known to have nobody who could show it.
        let notices = try home.wait(10) { transaction -> [NotificationRecord]? in
            let storms = try transaction.notifications().filter { $0.identifier.hasPrefix("storm-") }
            let isSettled = !storms.isEmpty && storms.allSatisfy { $0.deliveredAt != nil || $0.trouble != nil }
            return isSettled ? storms : nil
        }
        guard let notice = notices?.first else { return claims.add("one notification", false) }
        if notice.deliveredAt == nil {
            draw(notice)
            claims.add("one notification, drawn here", notices?.count == 1, seen: notice.trouble ?? "")
        } else {
            claims.add("one notification, on your desktop", notices?.count == 1, seen: notice.content.title)
            isOnDesktop = true
        }
        let jobs = try photoJobs(in: "awaitingPhoto")
        claims.add("one photo job waits for a photo", jobs == 1)
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
        Output.line(Output.bold("5. A photo of the storm, uploaded and verified"))
        let bytes = DemoPhoto.bytes()
        let file = (evidence ?? home.folder).appendingPathComponent("storm.jpg")
        try bytes.write(to: file)
        Output.line("   $ stormy upload storm.jpg --wait")
        let result = try home.stormy("upload", file.path, "--wait")
        let received = servers.receivedPhoto("storm.jpg") ?? Data()
        let digest = FileDigest.sha256(of: received)
        claims.add(
            "it arrived whole, under its own name",
            try result.status == 0 && sentDigest() == digest && DemoPhoto.pixels(of: received) == DemoPhoto.pixels(of: bytes)
                && servers.receivedFiles.count == 1,
            seen: "SHA-256 \(digest.prefix(12))…")
        claims.add(
            "where it was taken stayed here",
            DemoPhoto.isLocated(bytes) && !received.isEmpty && !DemoPhoto.isLocated(received),
            seen: "43.1° S, 147.5° E is in your file, and not in theirs")
        claims.add("the photo job is filled", try photoJobs(in: "awaitingPhoto") == 0)
    }

    private func photoJobs(in state: String) throws -> Int {
        try transfers().filter { $0["state"] as? String == state }.count
    }

    /// Of the photo, as the receipt says.
    private func sentDigest() throws -> String? {
        try transfers().first { $0["kind"] as? String == "upload" && $0["state"] as? String == "completed" }?["sha256"] as? String
    }

    private func transfers() throws -> [[String: Any]] {
        let output = try home.stormy("transfers", "--json").output
        return try JSONSerialization.jsonObject(with: output) as? [[String: Any]] ?? []
    }
}
