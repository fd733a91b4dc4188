import BackgroundScheduling
import Testing

/// Tests which transfers the conditions of the desktop allow.
@Suite struct TransferNeedsTests {
    private func met(_ change: (inout DesktopConditions) -> Void) -> TransferNeeds {
        var conditions = DesktopConditions(isNetworkAvailable: true, isNetworkMetered: false, isOnExternalPower: true)
        change(&conditions)
        return TransferNeeds(metBy: conditions)
    }

    @Test func `a desktop without restrictions meets all needs`() {
        #expect(met { _ in } == [.unmetered, .unconstrained, .notCellular, .externalPower])
        #expect(met { _ in }.openClasses.count == 16)
    }

    @Test func `each need is lost with its own condition`() {
        #expect(!met { $0.isNetworkMetered = true }.contains(.unmetered))
        #expect(!met { $0.isNetworkConstrained = true }.contains(.unconstrained))
        #expect(!met { $0.isNetworkCellular = true }.contains(.notCellular))
        #expect(!met { $0.isOnExternalPower = false }.contains(.externalPower))
        #expect(met { $0.isNetworkMetered = true }.openClasses.allSatisfy { !$0.contains(.unmetered) })
        #expect(met { $0.isNetworkMetered = true }.openClasses.count == 8)
    }

    /// GIO reports no network, but a host of the local network can be reached.
    @Test func `a missing network closes no class of transfers`() {
        #expect(met { $0.isNetworkAvailable = false }.openClasses.count == 16)
    }

    @Test func `the message names the first missing need`() {
        let all: TransferNeeds = [.unmetered, .externalPower]
        #expect(all.missing(from: all) == nil)
        #expect(all.missing(from: [.unmetered]) == "The transfer waits for external power.")
        #expect(all.missing(from: []) == "The transfer waits for an unmetered network.")
        #expect(TransferNeeds.notCellular.missing(from: []) == "The transfer waits for a network that is not cellular.")
    }

    @Test func `the last places are for hosts without an attempt`() {
        var room = TransferRoom(running: Array(repeating: "a", count: 6) + Array(repeating: "b", count: 6))
        #expect(!room.has("a", limit: 20) && !room.has("b", limit: 20))
        for host in ["c", "d", "e", "f"] {
            #expect(room.has(host, limit: 6))
            room.insert(host)
            #expect(!room.has(host, limit: 6))
        }
        #expect(!room.has("g", limit: 6))
    }

    @Test func `transfers are limited for each host and in total`() {
        var room = TransferRoom(running: ["a", "a"])
        #expect(room.has("a", limit: 3) && !room.has("a", limit: 2) && room.has("b", limit: 1))
        #expect(room.left == TransferRoom.limit - 2)
        for number in 0..<room.left { room.insert("h\(number)") }
        #expect(room.left == 0 && !room.has("new", limit: 6))
    }
}
