import BackgroundTasks
import Foundation
import GRDB
import Testing

@testable import Stormy

/// Tests the row of the daily check in the store.
@Suite final class DailyCheckTests {
    private let folder: URL
    private var path: String { folder.appendingPathComponent(StormyStore.fileName).path }

    init() throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("stormy-" + UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    /// Creates a store of the previous version. The store contains these settings, and one setting that does not belong to the
    /// daily check.
    private func makeEarlierStore(_ settings: [String: String]) throws {
        let queue = try DatabaseQueue(path: path)
        try StormyStore.migrator.migrate(queue, upTo: "16: the processes that queue a photo")
        try queue.write { database in
            for (name, value) in settings.merging(["chosen storm-1": "[]"], uniquingKeysWith: { own, _ in own }) {
                try database.execute(sql: "INSERT INTO setting (name, value) VALUES (?, ?)", arguments: [name, value])
            }
        }
        try queue.close()
    }

    private func names(in store: StormyStore) throws -> [String] {
        try store.queue.read { try String.fetchAll($0, sql: "SELECT name FROM setting ORDER BY name") }
    }

    @Test func `the settings of an earlier version become one row`() throws {
        let settings = ["at": "09:30:05", "exact": "false", "wake": "true", "spread": "0.25", "enabled": "true"]
        try makeEarlierStore(settings)
        let store = try StormyStore(folder: folder)
        let check = try #require(try store.dailyCheck())
        #expect(check.isOn && !check.isExact && check.wakesSystem)
        #expect(check.time == WallClockTime(hour: 9, minute: 30, second: 5))
        #expect(check.delay(within: 120) == 30, "an installation keeps its delay")
        #expect(try names(in: store) == ["chosen storm-1"])
        #expect(try StormyStore(folder: folder).dailyCheck() == check)
    }

    /// If the row is missing, this store may have replaced a lost store. The daily check then reports that the places are lost.
    @Test(arguments: [[:], ["at": "09:00", "exact": "true", "wake": "true"]] as [[String: String]])
    func `a check that was never turned on or off has no row`(_ settings: [String: String]) throws {
        try makeEarlierStore(settings)
        let store = try StormyStore(folder: folder)
        #expect(try store.dailyCheck() == nil)
        #expect(try names(in: store) == ["chosen storm-1"])
    }

    @Test(arguments: ["", "25:00", "noon"]) func `a time that cannot be read is noon`(_ text: String) throws {
        try makeEarlierStore(["at": text, "enabled": "false"])
        let check = try #require(try StormyStore(folder: folder).dailyCheck())
        #expect(!check.isOn && check.time == .noon)
    }

    @Test func `a change that is taken back restores the row or its absence`() throws {
        let store = try StormyStore(folder: folder)
        let first = try store.changeDailyCheck { $0.isOn = true }
        try store.retract(first)
        #expect(try store.dailyCheck() == nil)
        try store.changeDailyCheck { $0.time = .midnight }
        let before = try store.dailyCheck()
        let second = try store.changeDailyCheck { ($0.isOn, $0.time, $0.isExact) = (true, .noon, true) }
        #expect(second.before == before)
        try store.retract(second)
        #expect(try store.dailyCheck() == before)
    }

    @Test func `a change of another process is not taken back`() throws {
        let store = try StormyStore(folder: folder)
        let change = try store.changeDailyCheck { $0.isOn = true }
        try StormyStore(folder: folder).changeDailyCheck { $0.isOn = false }
        let after = try store.dailyCheck()
        try store.retract(change)
        #expect(try store.dailyCheck() == after && after?.isOn == false)
    }
}
