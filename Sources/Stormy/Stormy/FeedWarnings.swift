import BackgroundTasks
import BackgroundTransfer
import Foundation
import GRDB
import StormyWeather

/// Official warnings of the feeds that the configuration names, for all places. Not handed over: what was not there when the time was
/// up is asked for by the next check, and said until then.
struct FeedWarnings: Sendable {
    /// Documents of one feed that are fetched at one time; the others follow at the next.
    private static let mostDocuments = 200
    /// Of these side by side.
    private static let lanes = 4
    /// Seconds without a byte, and for all of an answer.
    private static let (patience, longestAnswer) = (10.0, 20.0)
    /// Seconds after which no further document is asked for: a person may wait.
    private static let longestRefresh: Duration = .seconds(40)

    let store: StormyStore
    let settings: StormySettings

    /// - Parameter limit: what is not there by then is asked for by the next check.
    /// - Returns: why feeds could not be asked, or not placed.
    /// - Throws: what the store says.
    @discardableResult
    func refresh(within limit: Duration) async throws -> [String] {
        try await within(limit) { try await refresh() }
    }

    /// The same, until all have answered or failed.
    @discardableResult
    func refresh() async throws -> [String] {
        guard settings.rule.alertSeverity != .off, !settings.warningFeeds.isEmpty else { return [] }
        let places = try store.places()
        if places.isEmpty { return [] }
        var troubles: [String] = []
        for feed in settings.warningFeeds {
            do {
                let (messages, missing) = try await messages(of: feed)
                let coded = messages.count(where: \.isCodedOnly)
                // A warning that draws nothing says nothing here; what changes or ends another does.
                let placed = messages.filter { !$0.isCodedOnly || $0.kind != .alert }
                for place in places {
                    try store.takeWarnings(
                        placed, isFeed: true, by: feed, of: place, rule: settings.rule, now: BGTaskScheduler.now)
                }
                var reasons: [String] = []
                if coded > 0 {
                    reasons.append(
                        "\(coded) of its \(messages.count) warnings name their areas by code alone, and cannot be placed")
                }
                if missing > 0 { reasons.append("\(missing) of its documents could not be read, and are tried again") }
                if reasons.isEmpty { continue }
                let why = reasons.joined(separator: "; ")
                for place in places { try store.noteWarningTrouble(why, by: feed, of: place) }
                troubles.append("warnings of \(StormyStore.shown(feed)): \(why)")
            } catch let error where error is WeatherError || error is URLError || error is CancellationError {
                let why = (error as? WeatherError)?.message ?? error.localizedDescription
                for place in places { try store.noteWarningTrouble(why, by: feed, of: place) }
                troubles.append("warnings of \(StormyStore.shown(feed)): \(why)")
            }
        }
        return troubles
    }

    /// - Returns: what it leads to, and how many documents are missing.
    private func messages(of feed: String) async throws -> ([AlertMessage], Int) {
        let entries = try AlertFeed.parse(await fetch(feed), base: feed)
        var (messages, links): ([AlertMessage], [String: String?]) = ([], [:])
        for entry in entries {
            switch entry {
            case .message(let message): messages.append(message)
            case .link(let link, let updated): links[link] = .some(updated)
            }
        }
        let now = BGTaskScheduler.now
        let known = try store.documents(links, now: now)
        let unknown = links.filter { known[$0.key] == nil }
        let fetched = try await documents(Array(unknown.prefix(Self.mostDocuments)), now: now)
        let all = known.merging(fetched) { $1 }
        return (messages + all.values.compactMap(\.message), unknown.count - fetched.count)
    }

    /// One that cannot be had is asked for again next time.
    private func documents(_ links: [(key: String, value: String?)], now: Date) async throws -> [String: WarningDocument] {
        var found: [String: WarningDocument] = [:]
        var left = links.makeIterator()
        let deadline = ContinuousClock.now + Self.longestRefresh
        try await withThrowingTaskGroup(of: WarningDocument?.self) { group in
            func addNext() {
                guard ContinuousClock.now < deadline, let link = left.next() else { return }
                group.addTask { try await document(link.key, updated: link.value, now: now) }
            }
            for _ in 0..<Self.lanes { addNext() }
            while let document = try await group.next() {
                if let document { found[document.link] = document }
                addNext()
            }
        }
        return found
    }

    private func document(_ link: String, updated: String?, now: Date) async throws -> WarningDocument? {
        guard let data = try? await fetch(link) else { return nil }
        let message: AlertMessage?
        do { message = try CAPDocument.parse(data) } catch { return nil }
        let document = WarningDocument(link: link, message: message, seenAt: now, updated: updated)
        try store.keepDocument(document)
        return document
    }

    private func fetch(_ address: String) async throws -> Data {
        let request = try URLRequest(WeatherRequest(url: address), userAgent: settings.userAgent)
        let session = URLSession(configuration: .question(patience: Self.patience, longest: Self.longestAnswer))
        let (data, response) = try await session.data(for: request)
        let status = (response as? HTTPURLResponse)?.statusCode ?? 200
        guard (200...299).contains(status) else { throw WeatherError.service(status: status, reason: "") }
        return data
    }
}

/// One that was fetched; without a message it is a test, an exercise or a draft.
struct WarningDocument: StoreRecord {
    static let databaseTableName = "warningDocument"
    var link: String
    var message: AlertMessage?
    var seenAt: Date
    /// When it was written, in the feed's words.
    var updated: String?
}

extension StormyStore {
    /// Seconds that a document is kept after its feed has named it last.
    private static let documentRetention: Double = 7 * 86_400

    /// Those of these links that were fetched as they are now. The others of long ago are forgotten.
    ///
    /// - Parameter links: with the feed's word on when each was written.
    func documents(_ links: [String: String?], now: Date) throws -> [String: WarningDocument] {
        try queue.write { database in
            var known: [String: WarningDocument] = [:]
            for (link, updated) in links {
                guard var document = try WarningDocument.fetchOne(database, key: link), document.updated == updated else {
                    continue
                }
                document.seenAt = now
                try document.update(database)
                known[link] = document
            }
            try database.execute(
                sql: "DELETE FROM warningDocument WHERE seenAt < ?",
                arguments: [now.timeIntervalSince1970 - Self.documentRetention])
            return known
        }
    }

    func keepDocument(_ document: WarningDocument) throws {
        var document = document
        try queue.write { try document.save($0) }
    }
}
