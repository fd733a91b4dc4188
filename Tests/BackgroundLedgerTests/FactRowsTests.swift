@testable import BackgroundLedger
import BackgroundScheduling
import Foundation
import Testing

/// Tests that facts are read with every field that was written.
@Suite struct FactRowsTests {
    /// Settings that all differ from their default values. If a new setting is missing in this list, the test fails.
    private static var changed: AgentSettings {
        var settings = AgentSettings()
        (settings.refreshBudget, settings.processingBudget, settings.grace) = (1, 2, 3)
        settings.continuation = 9
        (settings.backoffBase, settings.launchSpacing, settings.discretion) = (4, 6, 7)
        (settings.progressPatience, settings.notificationsEnabled) = (8, false)
        (settings.watchedFiles, settings.quietHours) = (["/config.toml"], "22:00-07:00")
        (settings.loudLevel, settings.silencedCategories) = (2, ["photos"])
        return settings
    }

    private func expectAllChanged<Value>(_ value: Value, from standard: Value) {
        for (new, old) in zip(Mirror(reflecting: value).children, Mirror(reflecting: standard).children) {
            #expect("\(new.value)" != "\(old.value)", "\(new.label ?? "") is not changed here")
        }
    }

    @Test func `every setting is read as it was written`() throws {
        expectAllChanged(Self.changed, from: AgentSettings())
        let test = try TestLedger()
        let ledger = try test.open()
        try ledger.write { try $0.setFact(.settings, Self.changed) }
        #expect(try ledger.read { try $0.fact(.settings) } == Self.changed)
    }

    @Test func `every condition is decoded as it was encoded`() throws {
        let standard = DesktopConditions(isNetworkAvailable: false, isNetworkMetered: false, isOnExternalPower: false)
        let changed = DesktopConditions(
            isNetworkAvailable: true, isNetworkMetered: true, isNetworkConstrained: true, isNetworkCellular: true,
            isNetworkWiFi: true, isOnExternalPower: true, isLowPowerMode: true,
            knowledge: DesktopConditions.Knowledge(network: true, metered: false, power: true))
        expectAllChanged(changed, from: standard)
        let read = try JSONDecoder().decode(DesktopConditions.self, from: JSONEncoder().encode(changed))
        #expect(read == changed)
    }
}
