import TransferMachines

/// Counts the bytes of a partial file that were written, hashed and synced.
struct PartBytes {
    /// The maximum number of bytes between two syncs. A crash loses at most this many bytes.
    private static let syncInterval: Int64 = 8 << 20
    private static let syncSeconds = 1.0
    /// The maximum number of bytes that are hashed in one turn.
    private static let turn: Int64 = 4 << 20

    private(set) var written: Int64 = 0
    private(set) var hashed: Int64 = 0
    private(set) var synced: Int64 = 0
    private(set) var digests = ArrivalDigests([])
    /// The number of times that the file was opened or read again. Results that were computed before the last of these times are
    /// ignored.
    private(set) var beginning = 0
    /// The digest of the first `end` bytes. This digest was computed before all bytes were read again.
    private var earlier: (end: Int64, sha256: String)?
    /// `true` if the second reading found other bytes than the first reading.
    private(set) var isRefuted = false
    private var syncedAt = ContinuousClock.now
    /// `true` if a sync of the file to the disk has failed. The kernel reports the error only once, and the next sync succeeds
    /// although the bytes are lost. So a later sync does not prove that bytes are on the disk.
    private var hasFailedSync = false

    var isHashed: Bool { hashed == written }
    var isDurable: Bool { synced == written }
    var maySync: Bool { !isDurable && !hasFailedSync }
    /// `true` if enough bytes have arrived for a turn of hashing.
    var isTurnFull: Bool { written - hashed >= Self.turn / 4 }
    var isSyncDue: Bool {
        written - synced >= Self.syncInterval
            || !isDurable && ContinuousClock.now - syncedAt >= .seconds(Self.syncSeconds)
    }

    /// The range that the next turn hashes.
    var nextTurn: Range<Int64> {
        let end = min(written, hashed + Self.turn)
        guard let earlier, earlier.end > hashed else { return hashed..<end }
        return hashed..<min(end, earlier.end)
    }

    /// Resets the counters after the file was opened and cut to `offset`. The bytes that are already in the file are read once.
    mutating func begin(at offset: Int64, proving algorithms: [RequiredDigest.Algorithm]) {
        (written, synced, syncedAt, hasFailedSync) = (offset, offset, .now, false)
        (hashed, earlier, isRefuted) = (0, nil, false)
        rehash(for: algorithms)
    }

    /// Begins to read all bytes again. The new digest is then compared with the earlier digest.
    mutating func rehash(for algorithms: [RequiredDigest.Algorithm]) {
        if hashed > 0, earlier == nil { earlier = (hashed, digests.sha256) }
        (hashed, digests) = (0, ArrivalDigests(algorithms))
        beginning += 1
    }

    mutating func recordWritten(to offset: Int64) { written = offset }

    mutating func recordHashed(to offset: Int64, _ found: ArrivalDigests) {
        (hashed, digests) = (offset, found)
        guard let earlier, earlier.end == offset else { return }
        if earlier.sha256 != found.sha256 { isRefuted = true }
        self.earlier = nil
    }

    mutating func recordFailedSync() { hasFailedSync = true }

    /// Records that the bytes before `offset` were synced to the disk. Returns `false` if more bytes were already synced, or if
    /// the result of the sync is not reliable.
    mutating func recordSynced(to offset: Int64) -> Bool {
        guard offset > synced, !hasFailedSync else { return false }
        (synced, syncedAt) = (offset, .now)
        return true
    }
}
