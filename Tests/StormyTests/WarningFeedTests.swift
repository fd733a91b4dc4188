import Foundation
import GRDB
import StormyWeather
import Testing

@testable import Stormy

/// What is stored of feeds of warnings and of their documents, and when they are requested again.
@Suite final class WarningFeedTests {
    private let folder: URL
    private let store: StormyStore
    private let noon = Date(timeIntervalSince1970: 1_800_000_000.123)

    init() throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("stormy-" + UUID().uuidString)
        store = try StormyStore(folder: folder)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    @Test func `an unknown code is reported once and the list of codes is limited`() throws {
        func code(_ number: Int) -> RegionCode { RegionCode(type: "EMMA_ID", value: "XX\(1000 + number)") }
        try store.noteUnknownCodes([code(2), code(1)])
        #expect(try store.takeUnknownCodes() == ["EMMA_ID XX1001", "EMMA_ID XX1002"])
        try store.noteUnknownCodes([code(1), code(3)])
        #expect(try store.takeUnknownCodes() == ["EMMA_ID XX1003"] && store.takeUnknownCodes() == [])
        try store.noteUnknownCodes(Set((0..<3000).map(code)))
        #expect(try store.takeUnknownCodes().count == 50, "the others follow")
        let count = try store.queue.read { try Int.fetchOne($0, sql: "SELECT COUNT(*) FROM unknownRegion") }
        #expect(count == 1000)
    }
}
