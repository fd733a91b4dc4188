import Testing
import TransferMachines

@testable import BackgroundAgent

@Suite struct PartBytesTests {
    private var bytes = PartBytes()

    init() { bytes.begin(at: 100, proving: []) }

    @Test func `bytes of an earlier attempt are durable and must be hashed again`() {
        #expect(bytes.isDurable && !bytes.isHashed)
        #expect(bytes.nextTurn == 0..<100)
    }

    @Test mutating func `a sync counts only if it makes more bytes durable`() {
        bytes.recordWritten(to: 300)
        #expect(bytes.maySync)
        let counts = [200, 300, 250].map { bytes.recordSynced(to: $0) }
        #expect(counts == [true, true, false])
        #expect(bytes.isDurable && bytes.synced == 300)
    }

    /// The kernel reports a failed write only once. The next sync of the same file reports success, although the bytes are not on
    /// the disk.
    @Test mutating func `bytes do not become durable after a failed sync`() {
        bytes.recordWritten(to: 300)
        bytes.recordFailedSync()
        let counts = bytes.recordSynced(to: 300)
        #expect(!counts && !bytes.maySync && bytes.synced == 100)
        bytes.begin(at: 100, proving: [])
        bytes.recordWritten(to: 200)
        #expect(bytes.maySync)
    }

    @Test mutating func `a second reading has a new number and no hashed bytes`() {
        let before = bytes.beginning
        bytes.rehash(for: [.sha512])
        #expect(bytes.beginning == before + 1 && bytes.hashed == 0)
    }

    private static func digests(_ text: String) -> ArrivalDigests {
        var digests = ArrivalDigests([])
        Array(text.utf8).withUnsafeBytes { digests.update($0) }
        return digests
    }

    @Test(arguments: [true, false]) mutating func `a second reading is compared with the first`(_ isSame: Bool) {
        bytes.begin(at: 0, proving: [])
        bytes.recordWritten(to: 5)
        bytes.recordHashed(to: 3, Self.digests("sun"))
        bytes.rehash(for: [])
        #expect(bytes.nextTurn == 0..<3, "the next bytes end where the first reading ended")
        bytes.recordHashed(to: 3, Self.digests(isSame ? "sun" : "fog"))
        #expect(bytes.isRefuted != isSame)
        #expect(bytes.nextTurn == 3..<5)
        bytes.begin(at: 0, proving: [])
        #expect(!bytes.isRefuted)
    }
}
