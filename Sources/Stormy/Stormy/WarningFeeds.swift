import Foundation
import GRDB
import StormyWeather
import TransferMachines

/// The list of the warnings that a feed contained when the feed was last received. The complete feed is not stored, because a
/// feed may have up to 16 MiB.
struct WarningFeed: StoreRecord {
    static let databaseTableName = "warningFeed"
    /// The name of an ``AlertService``, or the feed's address.
    var service: String
    var address: String
    /// The validator that makes the next request conditional.
    var validator: Validator?
    var parts: [Part]
    /// The time of the data according to the feed.
    var dataTime: Date?
    /// The time when the feed was last received. A response without newer data does not change this time.
    var receivedAt: Date
    /// The time when the list changed last.
    var changedAt: Date
    /// The time when the feed last contained another list although the validator was the same.
    var distrustedAt: Date?

    /// The list of a feed, or the part of the list that is about one place.
    struct Part: Codable, Sendable, Equatable {
        /// `nil` if the feed is not divided by place.
        var place: Coordinates?
        var entries: [AlertFeed.Entry]
        /// The number of documents that are not in ``entries``.
        var leftOut: Int
        /// The number of entries without a readable warning and without a usable link (``AlertFeed/Content/unusable``). `nil` if
        /// there are no such entries.
        var unusable: Int?
        /// `true` if the feed has further pages. `nil` if the feed has no further pages.
        var hasMorePages: Bool?
    }

    /// The number of seconds after which the complete feed is requested again. A server or a cache may send status 304 by
    /// mistake. A later version of Stormy may have other regions, and then needs the complete feed.
    private static let longestTrust: Double = 3 * 86_400
    /// The number of seconds for which a feed's validators are not used. The period begins when the list of warnings changed
    /// although the validators did not change.
    private static let distrust: Double = 30 * 86_400

    /// Returns the validator that makes the next request conditional. Returns `nil` if the complete feed is needed, because the
    /// list has no part for a place, or because the clock was changed.
    func condition(for places: [Coordinates?], now: Date) -> Validator? {
        guard (0..<Self.longestTrust).contains(now.timeIntervalSince(receivedAt)), !isDistrusted(now),
            places.allSatisfy({ part(of: $0) != nil })
        else { return nil }
        return validator
    }

    private func isDistrusted(_ now: Date) -> Bool {
        distrustedAt.map { (0..<Self.distrust).contains(now.timeIntervalSince($0)) } ?? false
    }

    func part(of place: Coordinates?) -> Part? { parts.first { $0.place == place } }

    /// Copies the dates of an earlier response if the list has not changed since then. If only a place was added, the list did
    /// not change.
    mutating func follow(_ earlier: WarningFeed) {
        let isChanged =
            earlier.parts.isEmpty || earlier.parts.contains { old in part(of: old.place).map { $0 != old } ?? false }
        if !isChanged { changedAt = earlier.changedAt }
        let isMistaken = isChanged && validator != nil && validator == earlier.validator
        distrustedAt = isMistaken ? receivedAt : earlier.distrustedAt
    }
}

/// A document in a feed.
struct FeedLink: Sendable {
    let address: String
    /// The time when the document was written, according to the feed.
    let updated: String?
}

/// A downloaded document. If the document has no message, it is a test, an exercise or a draft.
struct WarningDocument: StoreRecord {
    static let databaseTableName = "warningDocument"
    var link: String
    var message: AlertMessage?
    var seenAt: Date
    /// The time when the document was written, as the feed states it.
    var updated: String?
    /// The validator that makes the next request conditional.
    var validator: Validator?
    /// The time when the document was last requested.
    var checkedAt: Date
}

/// The downloaded documents of a feed that have not changed according to the feed.
struct KnownDocuments {
    var addresses: Set<String> = []
    /// The documents that are requested again, in the order of their last requests. A document can change without a change in its
    /// feed.
    var due: [FeedLink] = []
}

extension StormyStore {
    /// The maximum size in bytes of a stored list. A feed with a longer list is always requested without a condition.
    private static let longestList = 1 << 20

    func warningFeed(_ service: String, _ address: String) throws -> WarningFeed? {
        try queue.read { database in
            try WarningFeed.filter(Column("service") == service && Column("address") == address).fetchReadable(database).first
        }
    }

    func store(_ feed: WarningFeed) throws {
        var feed = feed
        if try JSONEncoder().encode(feed.parts).count > Self.longestList { (feed.parts, feed.validator) = ([], nil) }
        try queue.write { try feed.save($0) }
    }

    // MARK: Documents

    /// The number of seconds for which a document is kept after its feed last contained it.
    private static let documentRetention: Double = 7 * 86_400
    /// The number of seconds after which a document is requested again. The value is less than a day, so that each daily check
    /// requests the document. A check may begin earlier than the check of the day before, for example after the clocks were
    /// changed.
    private static let documentTrust: Double = 20 * 3600

    /// Returns the known documents of a feed, and deletes old documents of other feeds.
    ///
    /// - Parameter changedAt: The time when the list of the feed changed last. If the feed does not list when a document was
    ///   written, the document is requested again after such a change.
    func knownDocuments(_ links: [FeedLink], changedAt: Date, now: Date) throws -> KnownDocuments {
        try queue.write { database in
            var known = KnownDocuments()
            var due: [(link: FeedLink, checkedAt: Double)] = []
            for link in links where !known.addresses.contains(link.address) {
                try database.execute(
                    sql: "UPDATE warningDocument SET seenAt = ? WHERE link = ? AND updated IS ?",
                    arguments: [now.timeIntervalSince1970, link.address, link.updated])
                guard database.changesCount > 0 else { continue }
                known.addresses.insert(link.address)
                let checkedAt =
                    try Double.fetchOne(
                        database, sql: "SELECT checkedAt FROM warningDocument WHERE link = ?", arguments: [link.address]) ?? 0
                let isFresh = (0..<Self.documentTrust).contains(now.timeIntervalSince1970 - checkedAt)
                let mayHaveChanged = link.updated == nil && changedAt <= now && checkedAt < changedAt.timeIntervalSince1970
                if !isFresh || mayHaveChanged { due.append((link, checkedAt)) }
            }
            known.due = due.sorted { $0.checkedAt < $1.checkedAt }.map(\.link)
            try database.execute(
                sql: "DELETE FROM warningDocument WHERE seenAt < ?",
                arguments: [now.timeIntervalSince1970 - Self.documentRetention])
            return known
        }
    }

    func document(_ address: String) throws -> WarningDocument? {
        try queue.read { try WarningDocument.fetchOne($0, key: address) }
    }

    func saveDocument(_ document: WarningDocument) throws {
        var document = document
        try queue.write { try document.save($0) }
    }

    // MARK: Unknown codes

    /// The maximum number of stored codes. The limit exists so that a damaged feed cannot fill the disk.
    private static let mostUnknownCodes = 1000
    /// The maximum number of codes that are reported at the same time.
    private static let mostReportedCodes = 50

    /// Stores codes of areas that Stormy's table of regions does not contain. Each code is reported once.
    func storeUnknownCodes(_ codes: Set<RegionCode>) throws {
        if codes.isEmpty { return }
        try queue.write { database in
            for code in codes.map(\.text).sorted().prefix(Self.mostUnknownCodes) {
                try database.execute(
                    sql: """
                        INSERT OR IGNORE INTO unknownRegion (code) SELECT ? WHERE (SELECT COUNT(*) FROM unknownRegion) < ?
                        """, arguments: [code, Self.mostUnknownCodes])
            }
        }
    }

    /// Returns codes that were not reported so far, in order, and marks them as reported.
    func claimUnreportedCodes() throws -> [String] {
        try queue.write { database in
            let codes = try String.fetchAll(
                database, sql: "SELECT code FROM unknownRegion WHERE NOT isReported ORDER BY code LIMIT ?",
                arguments: [Self.mostReportedCodes])
            for code in codes {
                try database.execute(sql: "UPDATE unknownRegion SET isReported = 1 WHERE code = ?", arguments: [code])
            }
            return codes
        }
    }
}
