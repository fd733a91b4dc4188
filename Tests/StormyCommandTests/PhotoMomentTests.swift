import BackgroundTasksTesting
import Foundation
import ServerScripts
import Testing

/// Tests photos that wait for a good time, which means external power and a network that is not metered.
@Suite(.timeLimit(.minutes(30))) struct PhotoMomentTests {
    /// Runs a test on a machine that runs on battery.
    private func playOnBattery(
        _ configuration: String = PhotoHome.destination(), _ body: @Sendable (VirtualHome, DavStore) async throws -> Void
    ) async throws {
        try await PhotoHome.play(configuration) { home, store in
            try await home.driver.setConditions { $0.isOnExternalPower = false }
            try await body(home, store)
        }
    }

    @Test func `photos wait for external power`() async throws {
        try await playOnBattery { home, store in
            let photos = [try home.picture("one.jpg"), try home.picture("two.jpg")]
            let queued = try await home.stormy(["upload", "--when", "charging"] + photos.map(\.path))
            #expect(queued.status == 0 && queued.output.contains("held until there is external power"), "\(queued)")
            #expect(try await home.rows("transfers").map { $0["state"] as? String } == ["held", "held"])
            #expect(try await home.stormy("why", "StormyUploads").output.contains("external power"))
            // The original photo is no longer needed.
            try FileManager.default.removeItem(at: photos[0])
            try await home.driver.setConditions { $0.isOnExternalPower = true }
            try await home.driver.advance(by: .seconds(60))
            #expect(store.arrived == ["one.jpg", "two.jpg"])
            #expect(try await home.rows("transfers").map { $0["state"] as? String } == ["completed", "completed"])
        }
    }

    /// While the photo is being sent, the time of the processing task runs out. The photo waits again, and another launch is
    /// requested.
    @Test func `a photo is held again if its launch reaches its time limit`() async throws {
        try await playOnBattery(PhotoHome.destination("put", VirtualHome.origin + "/p/")) { home, _ in
            home.server.route("PUT", "/p/*", .status(201).after(.hold(until: "never")))
            let photo = try home.picture("one.jpg")
            #expect(try await home.stormy("upload", "--when", "charging", photo.path).status == 0)
            try await home.driver.simulateLaunch("StormyUploads")
            try await home.driver.advance(by: .seconds(1))
            #expect(home.driver.ledger.transfers.first?.state == .running)
            try await home.driver.simulateExpiration(of: "StormyUploads")
            #expect(home.driver.ledger.transfers.first?.state != .running)
            #expect(home.driver.ledger.requests.map(\.id) == ["StormyUploads"])
            #expect(try await home.rows("transfers").map { $0["state"] as? String } == ["held"])
            #expect(try await home.stormy("transfers", "cancel", "all").status == 0)
        }
    }

    /// The processing task does not wait for the paused photo, because the user may never resume it.
    @Test func `a photo that the user paused is not released`() async throws {
        try await playOnBattery { home, store in
            await home.setStartsAgents(false)
            let (paused, held) = (try home.picture("one.jpg"), try home.picture("two.jpg"))
            #expect(try await home.stormy("upload", paused.path).status == 0)
            #expect(try await home.stormy("transfers", "pause", "all").status == 0)
            #expect(try await home.stormy("upload", "--when", "charging", held.path).status == 0)
            await home.setStartsAgents(true)
            try await home.driver.startAgent()
            let launch = try await home.driver.simulateLaunch("StormyUploads")
            try await home.driver.finish(launch)
            #expect(home.driver.ledger.transfers.map(\.state) == [.paused, .completed])
            #expect(store.arrived == ["two.jpg"])
            let launches = try await home.rows("history").filter { $0["kind"] as? String == "processing" }
            let transcript = await home.driver.transcript.joined(separator: "\n")
            #expect(launches.map { $0["outcome"] as? String } == ["completed"], "\(transcript)")
        }
    }

    @Test func `a photo that waits for a good moment is sent at once if it is given again`() async throws {
        try await playOnBattery { home, store in
            let photo = try home.picture("one.jpg")
            #expect(try await home.stormy("upload", "--when", "charging", photo.path).status == 0)
            #expect(try await home.rows("transfers").map { $0["state"] as? String } == ["held"])
            let now = try await home.stormy("upload", "--wait", photo.path)
            #expect(now.status == 0 && now.errors.contains("is already queued"), "\(now)")
            #expect(store.arrived == ["one.jpg"])
        }
    }
}
