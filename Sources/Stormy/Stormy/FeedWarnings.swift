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

    /// Asks all feeds, side by side: one that stalls holds back no other.
    ///
    /// - Parameter limit: what is not there by then is asked for by the next check.
    /// - Returns: why feeds could not be asked, or not placed, in their order.
    /// - Throws: what the store says.
    @discardableResult
    func refresh(within limit: Duration) async throws -> [String] {
        guard settings.rule.alertSeverity != .off, !settings.warningFeeds.isEmpty else { return [] }
        let places = try store.places()
        if places.isEmpty { return [] }
        let troubles = try await withThrowingTaskGroup(of: (Int, String?).self) { group in
            for (number, feed) in settings.warningFeeds.enumerated() {
                group.addTask { (number, try await refresh(feed, places, within: limit)) }
            }
            return try await group.reduce(into: [Int: String]()) { $0[$1.0] = $1.1 }
        }
        return troubles.sorted { $0.key < $1.key }.map(\.value)
    }

    /// - Returns: what there is to say of one feed.
    private func refresh(_ feed: String, _ places: [Place], within limit: Duration) async throws -> String? {
        var why: String
        do {
            let found = try await within(limit) { try await messages(of: feed) }
            let coded = found.messages.count(where: \.isCodedOnly)
            // A warning that draws nothing says nothing here; what changes or ends another does.
            let placed = found.messages.filter { !$0.isCodedOnly || $0.kind != .alert }
            for place in places {
                try store.takeWarnings(placed, isFeed: true, by: feed, of: place, rule: settings.rule, now: BGTaskScheduler.now)
            }
            var reasons: [String] = []
            if coded > 0 {
                reasons.append(
                    "\(coded) of its \(found.messages.count) warnings name their areas by code alone, and cannot be placed")
            }
            if found.missing > 0 { reasons.append("\(found.missing) of its documents could not be read, and are tried again") }
            if found.leftOut > 0 { reasons.append("\(found.leftOut) of its documents, its oldest, were not looked at") }
            if reasons.isEmpty { return nil }
            why = reasons.joined(separator: "; ")
        } catch let error as WeatherError {
            why = error.message
        } catch let error where error is CancellationError || (error as? URLError)?.code == .cancelled {
            why = "no answer when the time was up"
        } catch let error as URLError {
            why = error.localizedDescription
        }
        for place in places { try store.noteWarningTrouble(why, by: feed, of: place) }
        return "warnings of \(StormyStore.shown(feed)): \(why)"
    }

    private struct Found {
        var messages: [AlertMessage]
        /// Documents that could not be had.
        var missing: Int
        /// Documents beyond those that are looked at.
        var leftOut: Int
    }

    private func messages(of feed: String) async throws -> Found {
        let content = try AlertFeed.parse(await fetch(feed), base: feed)
        var (messages, links): ([AlertMessage], [String: String?]) = ([], [:])
        for entry in content.entries {
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
        return Found(
            messages: messages + all.values.compactMap(\.message), missing: unknown.count - fetched.count,
            leftOut: content.leftOut)
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
