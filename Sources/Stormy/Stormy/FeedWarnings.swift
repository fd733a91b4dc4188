import BackgroundRuntime
import BackgroundTasks
import BackgroundTransfer
import Foundation
import StormyWeather
import TransferMachines

/// Official warnings of MeteoAlarm and of the feeds in the configuration, for all places. If the launch's time is up before a
/// request is complete, the request does not continue in the agent. The next check repeats the request. Stormy reports the
/// problem until the next check.
struct FeedWarnings: Sendable {
    /// The maximum number of bytes of one feed's documents in one check. When this number of bytes is reached, no further
    /// document is requested.
    private static let mostBytes = 16 << 20
    /// The maximum number of corners of all polygons in the warnings of one feed. If a feed has more corners, the documents at
    /// the end of the feed's list are not used.
    static let mostCorners = 250_000
    /// The maximum number of parts of all warnings of one feed. A warning has one part for each language, hazard or time.
    private static let mostInfos = 10_000
    /// The number of documents that are requested at the same time.
    private static let lanes = 4
    /// The maximum number of seconds without a byte, and the maximum number of seconds for a complete response.
    private static let (patience, longestAnswer) = (10.0, 20.0)
    /// The number of seconds after which a check requests no further document. This limit also applies if the caller has more
    /// time, because a user may be waiting.
    private static let longestRefresh: Duration = .seconds(40)
    /// The number of seconds after which a check no longer requests stored documents again. The remaining stored documents are
    /// requested at the next check.
    private static let longestRecheck: Duration = .seconds(10)

    let store: StormyStore
    let settings: StormySettings

    /// Requests all feeds at the same time, so that a stalled feed does not delay the other feeds. MeteoAlarm is requested only
    /// for places without a national service. Call ``refreshSubstitutes(for:within:)`` afterwards for the other places.
    ///
    /// - Parameter limit: the maximum time for all feeds. Documents that were not requested within this time are requested by the
    ///   next check.
    /// - Returns: The number of new documents that were not requested, because a feed has too many documents for one check.
    /// - Throws: an error of the store. If a feed has an error, the error is stored for each place.
    @discardableResult
    func refresh(within limit: Duration) async throws -> Int {
        let places = try store.places()
        try endUncounted(at: places)
        if places.isEmpty || settings.rule.alertSeverity == .off { return 0 }
        return try await withThrowingTaskGroup(of: Int.self) { group in
            group.addTask { try await refreshMeteoAlarm(places.filter(isMeteoAlarmFirst), within: limit) }
            for feed in settings.warningFeeds { group.addTask { try await refresh(feed, places, within: limit) } }
            return try await group.reduce(0, +)
        }
    }

    /// Ends a storm if Stormy no longer uses the services and feeds of its warnings.
    func endUncounted(at places: [Place]) throws {
        for place in places { try store.endUncounted(at: place, rule: settings.rule, now: BGTaskScheduler.now) }
    }

    /// Returns whether at least one feed has to be requested.
    func areNeeded(for places: [Place]) -> Bool {
        guard settings.rule.alertSeverity != .off else { return false }
        return !settings.warningFeeds.isEmpty || places.contains(where: isMeteoAlarmFirst)
    }

    private func refresh(_ feed: String, _ places: [Place], within limit: Duration) async throws -> Int {
        do {
            // New requests begin only in the first half of the time. In the second half, the running requests can end.
            let found = try await within(limit) { try await messages(of: feed, within: limit / 2) }
            // A new warning without a link is not used if the warning names its areas only by codes that Stormy does not know. A
            // message that changes or ends another warning is used.
            let placed = found.messages.filter { !$0.isCodedOnly || $0.kind != .alert || $0.link != nil }
            try store.storeUnknownCodes(Set(found.messages.flatMap(\.unknownCodes)))
            let isPartial = !placed.isEmpty || found.messages.isEmpty && found.missing + found.notRequested + found.unusable == 0
            for place in places {
                let taken = try store.storeWarnings(
                    placed, isFeed: true, isComplete: found.lacking.isEmpty, emptyLinks: found.emptyLinks,
                    dataTime: found.dataTime, by: feed, of: place, rule: settings.rule, now: BGTaskScheduler.now)
                let reasons = taken.unused + limits(of: found.messages, at: place) + found.lacking
                if reasons.isEmpty { continue }
                try store.storeWarningTrouble(reasons.joined(separator: "; "), isPartial: isPartial, by: feed, of: place)
            }
            return found.notRequested
        } catch {
            let why = try Self.reason(error)
            for place in places { try store.storeWarningTrouble(why, by: feed, of: place) }
            return 0
        }
    }

    /// Returns sentences about the parts of a place's warnings that Stormy does not read, or does not use exactly as the service
    /// wrote them.
    func limits(of messages: [AlertMessage], at place: Place) -> [String] {
        let now = BGTaskScheduler.now
        let unplaced = messages.compactMap { $0.unplaced(at: place.coordinates, least: settings.rule.alertSeverity, now: now) }
        let found = [
            (unplaced.count { $0 == .all }, "warnings name their areas only by codes that Stormy does not know"),
            (
                unplaced.count { $0 == .some },
                "warnings have some area codes that Stormy does not know, and may also be valid here"
            ),
            (messages.count(where: \.hasUnreadableShapes), "warnings have polygons or circles that cannot be read"),
            (
                messages.count(where: \.hasAmbiguousShapes),
                "warnings have polygons with two possible areas on the globe, and Stormy uses both areas"
            ),
            (
                messages.count { $0.hasNoOffset == true && !$0.infos.isEmpty },
                "warnings have times without an offset from UTC, so Stormy uses the longest possible period"
            ),
            (
                messages.count { $0.hasTooManyInfos == true },
                "warnings have more than \(CAPDocument.mostInfos) parts, and only the most severe parts are used"
            ),
            (
                messages.count { $0.hasTooManyCorners == true },
                "warnings have more than \(CAPDocument.mostCorners) corners in their areas, so Stormy does not use these warnings"
            ),
        ]
        return found.filter { $0.0 > 0 }.map { "\($0.0) of \(messages.count) \($0.1)" }
    }

    /// Returns the reason why a feed could not be read.
    ///
    /// - Throws: The parameter `error`, if this error is not about the request or the response.
    static func reason(_ error: any Error) throws -> String {
        switch error {
        case let error as WeatherError: return error.message
        case is CancellationError, URLError.cancelled: return "no response arrived within the time limit"
        case let error as URLError: return error.localizedDescription
        default: throw error
        }
    }

    struct Found {
        var messages: [AlertMessage]
        /// The number of new documents that were requested but could not be read.
        var missing: Int
        /// The number of new documents that were not requested, because the check reached its limit of time or of bytes.
        var notRequested: Int
        /// The number of documents that are not used, because the feed has too many documents, or because their areas have too
        /// many corners.
        var leftOut: Int
        /// The number of entries of a feed that have no readable warning and no usable link.
        var unusable = 0
        /// `true` if the feed has further pages, which are not read.
        var hasMorePages = false
        /// The addresses of documents that contain no warning: tests, exercises and drafts.
        var emptyLinks: Set<String>
        /// The time of the data according to the feed.
        var dataTime: Date?

        /// Sentences about documents that are not used.
        var lacking: [String] {
            let counts = [
                (missing, "documents could not be read, and will be requested again"),
                (notRequested, "documents were not requested yet, because there are too many for one check"),
                (leftOut, "documents were not used, because they exceed a limit or their links are not valid"),
            ]
            let sentences = counts.filter { $0.0 > 0 }.map { "\($0.0) of the feed's \($0.1)" }
            return unusable == 0
                ? sentences : sentences + ["\(unusable) of the entries of the feed have no readable warning and no usable link"]
        }
    }

    private func messages(of feed: String, within limit: Duration) async throws -> Found {
        let start = AppRuntime.ofWork.elapsed
        let listed = try await list(WeatherRequest(url: feed), service: feed, for: [nil]) { data, address in
            let content = try AlertFeed.parse(data, base: address)
            let unusable = content.unusable == 0 ? nil : content.unusable
            let part = WarningFeed.Part(
                place: nil, entries: content.entries, leftOut: content.leftOut, unusable: unusable,
                hasMorePages: content.hasMorePages ? true : nil)
            return ([part], content.dataTime)
        }
        var found = try await messages(of: listed, at: nil, until: start + min(limit, Self.longestRefresh))
        let part = listed.part(of: nil)
        (found.dataTime, found.unusable) = (listed.dataTime, part?.unusable ?? 0)
        found.hasMorePages = part?.hasMorePages ?? false
        return found
    }

    /// Requests a feed. The request is conditional if the stored list contains a part for each place.
    ///
    /// - Parameters:
    ///   - places: The places whose parts of the feed are needed.
    ///   - read: A closure that reads the parts of the places, and the time that the feed states. The second parameter of the
    ///     closure is the address of the response. A redirect changes this address, and relative links are relative to the new
    ///     address.
    /// - Returns: The list that the server sent, or the stored list if the server has no newer list.
    func list(
        _ request: WeatherRequest, service: String, for places: [Coordinates?], mostBytes: Int = ServiceResponse.maximumBytes,
        _ read: @Sendable (Data, _ address: String) throws -> (parts: [WarningFeed.Part], dataTime: Date?)
    ) async throws -> WarningFeed {
        let stored = try store.warningFeed(service, request.url)
        let condition = stored?.condition(for: places, now: BGTaskScheduler.now)
        let answer = try await fetch(request, unless: condition, mostBytes: mostBytes)
        guard let answer else {
            guard let stored else { throw WeatherError.notModified }
            return stored
        }
        let now = BGTaskScheduler.now
        let (parts, dataTime) = try read(answer.data, answer.address)
        var feed = WarningFeed(
            service: service, address: request.url, validator: answer.validator, parts: parts, dataTime: dataTime,
            receivedAt: now, changedAt: now)
        if let stored { feed.follow(stored) }
        try store.store(feed)
        return feed
    }

    /// Reads the messages and the linked documents of a feed for one place.
    ///
    /// - Parameter deadline: The elapsed time after which no further document is requested. The default is ``longestRefresh``
    ///   from now.
    func messages(
        of feed: WarningFeed, at place: Coordinates?,
        until deadline: Duration = AppRuntime.ofWork.elapsed + Self.longestRefresh
    ) async throws -> Found {
        let part = feed.part(of: place)
        var (messages, links): ([AlertMessage], [FeedLink]) = ([], [])
        for entry in part?.entries ?? [] {
            switch entry {
            case .message(let message): messages.append(message)
            case .link(let address, let updated): links.append(FeedLink(address: address, updated: updated))
            }
        }
        let now = BGTaskScheduler.now
        let known = try store.knownDocuments(links, changedAt: feed.changedAt, now: now)
        var listed: Set<String> = []
        let unknown = links.filter { listed.insert($0.address).inserted && !known.addresses.contains($0.address) }
        let (fetched, requested) = try await documents(unknown + known.due, known.addresses, until: deadline, now: now)
        var (left, infosLeft, leftOut) = (Self.mostCorners, Self.mostInfos, part?.leftOut ?? 0)
        var emptyLinks: Set<String> = []
        /// Subtracts the polygon corners and the parts of a message from the numbers that the limits still allow. Returns whether
        /// the message is within the limits.
        func isWithinLimit(_ message: AlertMessage) -> Bool {
            left -= message.cornerCount
            infosLeft -= message.infos.count
            if left < 0 || infosLeft < 0 { leftOut += 1 }
            return left >= 0 && infosLeft >= 0
        }
        messages = messages.filter(isWithinLimit)
        // The documents are read in the order of the feed's list, so that the last documents are not used if a limit is reached.
        for address in links.map(\.address) where listed.remove(address) != nil {
            if left < 0 || infosLeft < 0 {
                leftOut += 1
            } else if let document = try fetched[address] ?? (known.addresses.contains(address) ? store.document(address) : nil) {
                guard var message = document.message else {
                    emptyLinks.insert(address)
                    continue
                }
                message.link = address
                if isWithinLimit(message) { messages.append(message) }
            }
        }
        let lacking = unknown.filter { fetched[$0.address] == nil }
        let missing = lacking.count { requested.contains($0.address) }
        return Found(
            messages: messages, missing: missing, notRequested: lacking.count - missing, leftOut: leftOut, emptyLinks: emptyLinks)
    }

    /// Requests documents until the time limit is reached, or until the total size reaches its limit. A document that cannot be
    /// read is requested again by the next check.
    ///
    /// - Parameter known: The addresses of stored documents. The server sends such a document only if the document has changed.
    private func documents(
        _ links: [FeedLink], _ known: Set<String>, until deadline: Duration, now: Date
    ) async throws -> (found: [String: WarningDocument], requested: Set<String>) {
        var (found, bytes): ([String: WarningDocument], Int) = ([:], 0)
        var left = links.makeIterator()
        var requested: Set<String> = []
        let runtime = AppRuntime.ofWork
        let recheckDeadline = min(deadline, runtime.elapsed + Self.longestRecheck)
        try await withThrowingTaskGroup(of: (WarningDocument?, byteCount: Int).self) { group in
            func addNext() {
                guard bytes < Self.mostBytes, let link = left.next() else { return }
                let isKnown = known.contains(link.address)
                guard runtime.elapsed < (isKnown ? recheckDeadline : deadline) else { return }
                requested.insert(link.address)
                group.addTask {
                    let stored = try isKnown ? store.document(link.address) : nil
                    return try await document(link, stored, now: now)
                }
            }
            for _ in 0..<Self.lanes { addNext() }
            while let (document, byteCount) = try await group.next() {
                if let document { found[document.link] = document }
                bytes += byteCount
                addNext()
            }
        }
        return (found, requested)
    }

    /// Requests a document. Returns the stored document if the document has not changed, or if the new version cannot be read.
    private func document(
        _ link: FeedLink, _ stored: WarningDocument?, now: Date
    ) async throws -> (WarningDocument?, byteCount: Int) {
        let answer = try? await fetch(WeatherRequest(url: link.address), unless: stored?.validator)
        var document = stored
        document?.checkedAt = now
        if let answer {
            do {
                let message = try CAPDocument.parse(answer.data)
                // A cache of the server may send a version that is older than the stored document.
                if let message, let known = stored?.message, message.isOlderVersion(of: known, now: now) {
                    throw WeatherError.notModified
                }
                document = WarningDocument(
                    link: link.address, message: message, seenAt: now, updated: link.updated, validator: answer.validator,
                    checkedAt: now)
            } catch {
                // The stored document is used until the next check requests it again.
            }
        }
        // A document whose request was cancelled is requested again at the next check.
        if let document, answer != nil || !Task.isCancelled { try store.saveDocument(document) }
        return (document, answer?.data.count ?? 0)
    }

    /// Sends a conditional request.
    ///
    /// - Parameter validator: The validator of the stored version. The server sends a body only if the server has another
    ///   version.
    /// - Returns: `nil` if the stored version is current.
    private func fetch(
        _ request: WeatherRequest, unless validator: Validator?, mostBytes: Int = ServiceResponse.maximumBytes
    ) async throws -> (data: Data, validator: Validator?, address: String)? {
        var request = request
        if let validator { request.headers[validator.condition.name] = validator.condition.value }
        let asked = try URLRequest(request, userAgent: settings.userAgent)
        let session = URLSession(
            configuration: .question(patience: Self.patience, longest: Self.longestAnswer, mostBytes: mostBytes))
        let (data, response) = try await session.data(for: asked)
        let http = response as? HTTPURLResponse
        switch http?.statusCode ?? 200 {
        case 200...299:
            let validator = http.flatMap { Validator.toRevalidate(ResponseHead($0), receivedAt: BGTaskScheduler.now) }
            return (data, validator, response.url?.absoluteString ?? request.url)
        case 304 where validator != nil: return nil
        // The request was not conditional, so status 304 does not confirm a stored version.
        case 304: throw WeatherError.notModified
        case let status: throw WeatherError.service(status: status, reason: "")
        }
    }
}

extension ResponseHead {
    /// Keeps only the headers that are validators.
    fileprivate init(_ response: HTTPURLResponse) {
        let headers = ["ETag", "Last-Modified", "Date"].compactMap { name in
            response.value(forHTTPHeaderField: name).map { HeaderField(name, $0) }
        }
        self.init(status: response.statusCode, headers: headers, url: response.url?.absoluteString ?? "")
    }
}
