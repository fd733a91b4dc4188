import BackgroundTasks
import BackgroundTransfer
import Foundation
import GRDB
import StormyWeather

/// Official warnings of MeteoAlarm and of the feeds that the configuration names, for all places. Not handed over: what was not there
/// when the time was up is asked for by the next check, and said until then.
struct FeedWarnings: Sendable {
    /// Documents of one feed that are fetched at one time; the others follow at the next.
    private static let mostDocuments = 200
    /// Bytes of documents of one feed after which no further document is fetched at one time.
    private static let mostBytes = 16 << 20
    /// Corners of all polygons of one feed that are looked at. The oldest documents are left out.
    static let mostCorners = 250_000
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
        guard settings.rule.alertSeverity != .off else { return [] }
        let places = try store.places()
        if places.isEmpty { return [] }
        let troubles = try await withThrowingTaskGroup(of: (Int, [String]).self) { group in
            group.addTask { (-1, try await refreshMeteoAlarm(places, within: limit)) }
            for (number, feed) in settings.warningFeeds.enumerated() {
                group.addTask { (number, [try await refresh(feed, places, within: limit)].compactMap { $0 }) }
            }
            return try await group.reduce(into: [Int: [String]]()) { $0[$1.0] = $1.1 }
        }
        return troubles.sorted { $0.key < $1.key }.flatMap(\.value)
    }

    /// Whether there is a feed to request.
    func areNeeded(for places: [Place]) throws -> Bool {
        guard settings.rule.alertSeverity != .off else { return false }
        return try !settings.warningFeeds.isEmpty || places.contains { try meteoAlarmCountries(of: $0) != nil }
    }

    /// - Returns: what there is to say of one feed.
    private func refresh(_ feed: String, _ places: [Place], within limit: Duration) async throws -> String? {
        var why: String
        do {
            let found = try await within(limit) { try await messages(of: feed) }
            let tooFine = found.messages.count { $0.hasTooManyCorners == true }
            let coded = found.messages.count(where: \.isCodedOnly) - tooFine
            // A warning that draws nothing says nothing here; what changes or ends another does.
            let placed = found.messages.filter { !$0.isCodedOnly || $0.kind != .alert || $0.link != nil }
            var reasons: [String] = []
            for place in places {
                let taken = try store.takeWarnings(
                    placed, isFeed: true, isComplete: found.missing == 0 && found.leftOut == 0, emptyLinks: found.emptyLinks,
                    dataTime: found.dataTime, by: feed, of: place, rule: settings.rule, now: BGTaskScheduler.now)
                reasons += taken.unused.filter { !reasons.contains($0) }
            }
            if coded > 0 {
                reasons.append(
                    "\(coded) of its \(found.messages.count) warnings name their areas by code alone, and cannot be placed")
            }
            if tooFine > 0 {
                reasons.append(
                    "\(tooFine) of its \(found.messages.count) warnings have more than \(CAPDocument.mostCorners) corners, and cannot be placed"
                )
            }
            if found.missing > 0 { reasons.append("\(found.missing) of its documents could not be read, and are tried again") }
            if found.leftOut > 0 { reasons.append("\(found.leftOut) of its documents, its oldest, were not looked at") }
            if reasons.isEmpty { return nil }
            why = reasons.joined(separator: "; ")
        } catch {
            why = try Self.reason(error)
        }
        for place in places { try store.noteWarningTrouble(why, by: feed, of: place) }
        return "warnings of \(StormyStore.shown(feed)): \(why)"
    }

    /// Why a feed could not be read.
    ///
    /// - Throws: the error if it is not about the request or the answer.
    static func reason(_ error: any Error) throws -> String {
        switch error {
        case let error as WeatherError: return error.message
        case is CancellationError, URLError.cancelled: return "no answer when the time was up"
        case let error as URLError: return error.localizedDescription
        default: throw error
        }
    }

    struct Found {
        var messages: [AlertMessage]
        /// Documents that could not be had.
        var missing: Int
        /// Documents beyond those that are looked at: of too many, or of too many corners.
        var leftOut: Int
        /// Documents that contain no warning: tests, exercises and drafts.
        var emptyLinks: Set<String>
        /// The feed's own time of its data.
        var dataTime: Date?
    }

    private func messages(of feed: String) async throws -> Found {
        let content = try AlertFeed.parse(await fetch(WeatherRequest(url: feed)), base: feed)
        var found = try await messages(of: content.entries, leftOut: content.leftOut)
        found.dataTime = content.dataTime
        return found
    }

    /// Reads what the entries of a feed lead to.
    ///
    /// - Parameter leftOut: documents that are not among the entries.
    func messages(of entries: [AlertFeed.Entry], leftOut: Int) async throws -> Found {
        var (messages, links): ([AlertMessage], [FeedLink]) = ([], [])
        for entry in entries {
            switch entry {
            case .message(let message): messages.append(message)
            case .link(let address, let updated): links.append(FeedLink(address: address, updated: updated))
            }
        }
        let now = BGTaskScheduler.now
        let known = try store.knownDocuments(links, now: now)
        var listed: Set<String> = []
        let unknown = links.filter { listed.insert($0.address).inserted && !known.contains($0.address) }
        let fetched = try await documents(Array(unknown.prefix(Self.mostDocuments)), now: now)
        var (left, leftOut) = (Self.mostCorners, leftOut)
        var emptyLinks: Set<String> = []
        /// Whether there are corners left for a message.
        func isWithinLimit(_ message: AlertMessage) -> Bool {
            left -= message.cornerCount
            if left < 0 { leftOut += 1 }
            return left >= 0
        }
        messages = messages.filter(isWithinLimit)
        // The newest first.
        for address in links.map(\.address) where listed.remove(address) != nil {
            if left < 0 {
                leftOut += 1
            } else if let document = try fetched[address] ?? (known.contains(address) ? store.document(address) : nil) {
                guard var message = document.message else {
                    emptyLinks.insert(address)
                    continue
                }
                message.link = address
                if isWithinLimit(message) { messages.append(message) }
            }
        }
        return Found(messages: messages, missing: unknown.count - fetched.count, leftOut: leftOut, emptyLinks: emptyLinks)
    }

    /// One that cannot be had is asked for again next time.
    private func documents(_ links: [FeedLink], now: Date) async throws -> [String: WarningDocument] {
        var (found, bytes): ([String: WarningDocument], Int) = ([:], 0)
        var left = links.makeIterator()
        let deadline = ContinuousClock.now + Self.longestRefresh
        try await withThrowingTaskGroup(of: (WarningDocument?, byteCount: Int).self) { group in
            func addNext() {
                guard bytes < Self.mostBytes, ContinuousClock.now < deadline, let link = left.next() else { return }
                group.addTask { try await document(link, now: now) }
            }
            for _ in 0..<Self.lanes { addNext() }
            while let (document, byteCount) = try await group.next() {
                if let document { found[document.link] = document }
                bytes += byteCount
                addNext()
            }
        }
        return found
    }

    private func document(_ link: FeedLink, now: Date) async throws -> (WarningDocument?, byteCount: Int) {
        guard let data = try? await fetch(WeatherRequest(url: link.address)) else { return (nil, 0) }
        let message: AlertMessage?
        do { message = try CAPDocument.parse(data) } catch { return (nil, data.count) }
        let document = WarningDocument(link: link.address, message: message, seenAt: now, updated: link.updated)
        try store.keepDocument(document)
        return (document, data.count)
    }

    func fetch(_ request: WeatherRequest) async throws -> Data {
        let request = try URLRequest(request, userAgent: settings.userAgent)
        let session = URLSession(configuration: .question(patience: Self.patience, longest: Self.longestAnswer))
        let (data, response) = try await session.data(for: request)
        let status = (response as? HTTPURLResponse)?.statusCode ?? 200
        guard (200...299).contains(status) else { throw WeatherError.service(status: status, reason: "") }
        return data
    }
}

/// A document in a feed.
struct FeedLink: Sendable {
    let address: String
    /// When the document was written, according to the feed.
    let updated: String?
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

    /// The addresses of the documents that were fetched and have not changed since. Other documents of long ago are removed.
    func knownDocuments(_ links: [FeedLink], now: Date) throws -> Set<String> {
        try queue.write { database in
            var known: Set<String> = []
            for link in links {
                try database.execute(
                    sql: "UPDATE warningDocument SET seenAt = ? WHERE link = ? AND updated IS ?",
                    arguments: [now.timeIntervalSince1970, link.address, link.updated])
                if database.changesCount > 0 { known.insert(link.address) }
            }
            try database.execute(
                sql: "DELETE FROM warningDocument WHERE seenAt < ?",
                arguments: [now.timeIntervalSince1970 - Self.documentRetention])
            return known
        }
    }

    func document(_ address: String) throws -> WarningDocument? {
        try queue.read { try WarningDocument.fetchOne($0, key: address) }
    }

    func keepDocument(_ document: WarningDocument) throws {
        var document = document
        try queue.write { try document.save($0) }
    }
}
