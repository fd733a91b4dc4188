import BackgroundTasksTesting
import BackgroundTasks
import BackgroundTransfer
import ServerScripts
import Synchronization
import Testing
import UserNotifications

/// Tests of `ChatApp.swift`.
@Suite struct ChatAppTests {
    private static let refresh = "com.example.chat.refresh"
    private static let messages = """
        [{"id": 7, "conversation": "family", "sender": "Ada", "text": "Are you coming?"},
         {"id": 8, "conversation": "work", "sender": "Bob", "text": "Lunch?"}]
        """

    private func run(_ body: @Sendable (TestDriver, ChatController, VirtualServer) async throws -> Void) async throws {
        try await TestDriver.run(permitting: [Self.refresh], start: .now) { driver in
            let url = try #require(URL(string: "https://chat.test"))
            let chat = await ChatController(service: ChatService(baseURL: url))
            try await chat.start()
            try await body(driver, chat, driver.network.server("https://chat.test"))
        }
    }

    @Test func `messages are received in the background`() async throws {
        try await run { driver, chat, server in
            server.route("GET", "/messages", .json(Self.messages), .json("[]"))
            let launch = try await driver.finish(driver.advanceToNextLaunch())
            #expect(launch.outcome == .completed)
            try await driver.settle()
            let shown = driver.notifications.shown
            #expect(shown.map(\.title) == ["Ada", "Bob"])
            #expect(shown.first?.buttons.count == 2)
            #expect(driver.notifications.badge == 2)
            #expect(driver.ledger.requests.map(\.id) == [Self.refresh])
            try await driver.finish(driver.advanceToNextLaunch())
            #expect(server.requests().map(\.target) == ["/messages?since=0", "/messages?since=8"])
            #expect(driver.notifications.shown.count == 2)
        }
    }

    @Test func `a reply is sent from the notification`() async throws {
        try await run { driver, chat, server in
            server.route("GET", "/messages", .json(Self.messages))
            server.route("POST", "/messages", .status(201))
            try await driver.finish(driver.advanceToNextLaunch())
            try await driver.settle()
            #expect(driver.notifications.reply("In a minute", on: "message-7"))
            let launch = try await driver.finish(driver.advanceToNextLaunch())
            #expect(launch.kind == .notificationResponse && launch.outcome == .completed)
            let reply = ChatReply(conversation: "family", text: "In a minute")
            #expect(await chat.sent == [reply])
            let post = try #require(server.requests().last)
            #expect(post.method == "POST" && post.headers["Content-Type"] == "application/json")
            #expect(try post.bodyByteCount == JSONEncoder().encode(reply).count)
            #expect(driver.notifications.shown.map(\.title) == ["Bob"])
            #expect(driver.notifications.badge == 1)
        }
    }

    @Test func `a task expires if the server does not respond`() async throws {
        try await run { driver, chat, server in
            server.route("GET", "/messages", .silence)
            let launch = try await driver.finish(driver.advanceToNextLaunch())
            #expect(launch.outcome == .expired)
            #expect(await chat.unread.isEmpty)
            #expect(driver.ledger.requests.map(\.id) == [Self.refresh])
        }
    }
}

/// Tests of `HealthExporterApp.swift`.
@Suite struct HealthExporterAppTests {
    private struct Samples: HealthSampleSource {
        let count: Int

        func samples(after anchor: Int, limit: Int) async throws -> (samples: [HealthSample], anchor: Int) {
            let end = min(count, anchor + limit)
            return ((anchor..<end).map { HealthSample(id: $0, type: "steps", value: Double($0)) }, end)
        }
    }

    private func run(
        _ body: @Sendable (TestDriver, HealthExporter, AnchorStore, VirtualServer) async throws -> Void
    ) async throws {
        try await withFolder { folder in
            try await TestDriver.run(permitting: [HealthExporter.taskIdentifier, HealthExporter.researchIdentifier]) { driver in
                let anchors = AnchorStore(url: folder.appendingPathComponent("anchor.json"))
                let url = try #require(URL(string: "https://health.test/samples"))
                let exporter = HealthExporter(source: Samples(count: 250), endpoint: url, anchors: anchors)
                exporter.registerBackgroundTask()
                try await body(driver, exporter, anchors, driver.network.server("https://health.test"))
            }
        }
    }

    @Test func `samples are exported when power and network are available`() async throws {
        try await run { driver, exporter, anchors, server in
            server.route("POST", "/samples", .status(201))
            try await driver.setConditions { $0.isOnExternalPower = false }
            await exporter.schedule()
            // A second call of `schedule()` does not submit another request.
            await exporter.schedule()
            try await driver.advance(by: .seconds(3_600))
            #expect(server.requests().isEmpty)
            try await driver.setConditions { $0.isOnExternalPower = true }
            #expect(try await driver.finish(driver.advanceToNextLaunch()).outcome == .completed)
            #expect(server.requests().count == 3 && anchors.anchor == 250)
            #expect(driver.ledger.requests.isEmpty)
        }
    }

    @Test func `an interrupted export continues at its anchor`() async throws {
        try await run { driver, exporter, anchors, server in
            try await cutShort(driver, exporter, anchors, server)
            await exporter.schedule()
            try await driver.setConditions { ($0.isOnExternalPower, $0.isNetworkAvailable) = (true, true) }
            #expect(try await driver.finish(driver.advanceToNextLaunch()).outcome == .completed)
            #expect(anchors.anchor == 250)
            // Only the second batch was sent again.
            #expect(server.requests().count == 4)
        }
    }

    /// Sends one batch, and stops the launch while the second batch is sent.
    private func cutShort(
        _ driver: TestDriver, _ exporter: HealthExporter, _ anchors: AnchorStore, _ server: VirtualServer
    ) async throws {
        server.route("POST", "/samples", .status(201), .silence, .status(201))
        await exporter.schedule()
        _ = try await driver.advanceToNextLaunch()
        try await driver.advance(by: .seconds(5))
        let stopped = try await driver.stop(reason: .conditionLost)
        #expect(stopped.outcome == .failed || stopped.outcome == .expired)
        #expect(anchors.anchor == 100)
    }

    /// The handler submits a request unless a request is already pending. The request that caused the running launch is no longer
    /// pending.
    @Test
    func `an interrupted export submits a new request`() async throws {
        try await run { driver, exporter, anchors, server in
            try await cutShort(driver, exporter, anchors, server)
            #expect(driver.ledger.requests.map(\.id) == [HealthExporter.taskIdentifier])
        }
    }

    @Test func `a research request is not permitted`() async throws {
        try await run { _, exporter, _, _ in
            #expect(throws: BGTaskScheduler.Error(.notPermitted)) { try exporter.scheduleResearch() }
        }
    }
}
