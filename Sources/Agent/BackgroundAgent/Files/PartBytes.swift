import TransferMachines

/// How far the bytes of a part file are: written, hashed, durable.
struct PartBytes {
    /// Bytes, and seconds, between syncs: a crash costs at most this much again.
    private static let syncInterval: Int64 = 8 << 20
    private static let syncSeconds = 1.0
    /// Bytes hashed in one turn.
    private static let turn: Int64 = 4 << 20

    private(set) var written: Int64 = 0
    private(set) var hashed: Int64 = 0
    private(set) var synced: Int64 = 0
    private(set) var digests = ArrivalDigests([])
    /// Which beginning of the file this is: what was found out about an earlier one is of no use.
    private(set) var beginning = 0
    /// The digest of the first bytes, from before all bytes are read again.
    private var earlier: (end: Int64, sha256: String)?
    /// The second reading found other bytes than the first.
    private(set) var isRefuted = false
    private var syncedAt = ContinuousClock.now
    /// A sync failed. The kernel says so once, and the next one succeeds without the bytes: nothing more is durable.
    private var hasFailedSync = false

    var isHashed: Bool { hashed == written }
    var isDurable: Bool { synced == written }
    var maySync: Bool { !isDurable && !hasFailedSync }
    /// Enough has come for hashing to be worth a turn.
    var isTurnFull: Bool { written - hashed >= Self.turn / 4 }
    var isSyncDue: Bool {
        written - synced >= Self.syncInterval
            || !isDurable && ContinuousClock.now - syncedAt >= .seconds(Self.syncSeconds)
    }

    /// What the next turn hashes.
    var nextTurn: Range<Int64> {
        let end = min(written, hashed + Self.turn)
        guard let earlier, earlier.end > hashed else { return hashed..<end }
        return hashed..<min(end, earlier.end)
    }

    /// The file was opened and cut to `offset`. What it holds already is read once.
    mutating func begin(at offset: Int64, proving algorithms: [RequiredDigest.Algorithm]) {
        (written, synced, syncedAt, hasFailedSync) = (offset, offset, .now, false)
        (hashed, earlier, isRefuted) = (0, nil, false)
        rehash(for: algorithms)
    }

    /// All of it is read again, and compared with what was read before.
    mutating func rehash(for algorithms: [RequiredDigest.Algorithm]) {
        if hashed > 0, earlier == nil { earlier = (hashed, digests.sha256) }
        (hashed, digests) = (0, ArrivalDigests(algorithms))
        beginning += 1
    }

    mutating func noteWritten(to offset: Int64) { written = offset }

    mutating func noteHashed(to offset: Int64, _ found: ArrivalDigests) {
        (hashed, digests) = (offset, found)
        guard let earlier, earlier.end == offset else { return }
        if earlier.sha256 != found.sha256 { isRefuted = true }
        self.earlier = nil
    }

    mutating func noteFailedSync() { hasFailedSync = true }

    /// `false`: more was durable already, or it cannot be relied on.
    mutating func noteSynced(to offset: Int64) -> Bool {
        guard offset > synced, !hasFailedSync else { return false }
        (synced, syncedAt) = (offset, .now)
        return true
    }
}
