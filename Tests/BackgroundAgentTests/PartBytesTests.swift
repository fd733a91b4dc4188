import Testing
import TransferMachines

@testable import BackgroundAgent

@Suite struct PartBytesTests {
    private var bytes = PartBytes()

    init() { bytes.begin(at: 100, proving: []) }

    @Test func whatWasHeldIsDurableAndHashedAnew() {
        #expect(bytes.isDurable && !bytes.isHashed)
        #expect(bytes.nextTurn == 0..<100)
    }

    @Test mutating func aSyncCountsOnce() {
        bytes.noteWritten(to: 300)
        #expect(bytes.maySync)
        let counts = [200, 300, 250].map { bytes.noteSynced(to: $0) }
        #expect(counts == [true, true, false])
        #expect(bytes.isDurable && bytes.synced == 300)
    }

    /// The kernel tells of a lost write once: the next sync of the same file succeeds, without the bytes.
    @Test mutating func afterAFailedSyncNothingMoreIsDurable() {
        bytes.noteWritten(to: 300)
        bytes.noteFailedSync()
        let counts = bytes.noteSynced(to: 300)
        #expect(!counts && !bytes.maySync && bytes.synced == 100)
        bytes.begin(at: 100, proving: [])
        bytes.noteWritten(to: 200)
        #expect(bytes.maySync)
    }

    @Test mutating func anotherBeginningIsAnotherFile() {
        let before = bytes.beginning
        bytes.rehash(for: [.sha512])
        #expect(bytes.beginning == before + 1 && bytes.hashed == 0)
    }
}
