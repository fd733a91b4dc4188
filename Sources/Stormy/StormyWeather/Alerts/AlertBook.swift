import Foundation

/// The state of a warning at one place.
package struct AlertEvent: Sendable, Equatable {
    package enum State: Sendable, Equatable { case standing, cancelled }

    /// The identifiers of all known messages of the event in ascending order, including messages that are only referenced.
    package var messages: [String]
    package var state: State
    /// The `info` elements of the newest message about the place, in one language. There is one element for each hazard and time.
    /// The array is empty if the warning is cancelled, or is now only for other places. The array is also empty if only messages
    /// that refer to the warning are known.
    package var infos: [AlertInfo]

    package init(messages: [String], state: State, infos: [AlertInfo]) {
        (self.messages, self.state, self.infos) = (messages, state, infos)
    }
}

/// The known messages about a place, grouped by event.
///
/// Messages that refer to each other belong to one event. The order in which messages arrive has no effect. An update replaces
/// the messages that it refers to, and a cancellation ends the messages that it refers to. A cancelled warning is not the same as
/// an expired warning.
package struct AlertBook: Sendable, Equatable {
    private(set) package var messages: [AlertMessage]

    package init(_ messages: [AlertMessage] = []) {
        self.messages = []
        let links = Set(messages.map(\.link))
        for message in messages { insert(message, listedAt: links, keepsUnlisted: true, now: .distantFuture) }
    }

    package mutating func add(_ message: AlertMessage) { add([message]) }

    /// Adds the messages that the service lists now. If a message is sent again with the same identifier, the later sending time
    /// is used. If several listed documents have the same identifier, all these documents are used. The new content of a document
    /// replaces the earlier content of this document, even if the identifiers differ.
    ///
    /// - Parameters:
    ///   - keepsUnlisted: `true` if a warning stays in force when its document is no longer listed.
    ///   - now: the current time. If the time of a stored message is later, the message came from a wrong clock, and is not
    ///     treated as newer.
    package mutating func add(_ listed: [AlertMessage], keepsUnlisted: Bool = true, now: Date = .distantFuture) {
        let listed = Self.joined(listed)
        let links = Dictionary(grouping: listed, by: \.identifier).mapValues { Set($0.map(\.link)) }
        for message in listed {
            insert(message, listedAt: links[message.identifier] ?? [], keepsUnlisted: keepsUnlisted, now: now)
            guard let link = message.link else { continue }
            for index in messages.indices where messages[index].link == link && messages[index].identifier != message.identifier {
                messages[index].replacedBy = message.identifier
            }
        }
    }

    /// Joins warnings that were listed together, and have the same identifier and no address. A joined warning has the parts of
    /// all these warnings.
    private static func joined(_ listed: [AlertMessage]) -> [AlertMessage] {
        var (joined, known): ([AlertMessage], [[String?]: Int]) = ([], [:])
        for message in listed {
            let key = [message.identifier, message.link]
            guard message.kind == .alert, let index = known[key] else {
                if message.kind == .alert { known[key] = joined.count }
                joined.append(message)
                continue
            }
            var (newer, older) = (message, joined[index])
            if older.sent > newer.sent { swap(&newer, &older) }
            newer.infos += older.infos.filter { !newer.infos.contains($0) }
            joined[index] = newer
        }
        return joined
    }

    /// - Parameter links: the addresses at which the identifier is listed now.
    private mutating func insert(_ message: AlertMessage, listedAt links: Set<String?>, keepsUnlisted: Bool, now: Date) {
        func isOlder(_ known: AlertMessage) -> Bool { known.sent <= message.sent || known.sent > now }
        /// Returns whether an earlier list contained the message at another address.
        func isMoved(_ known: AlertMessage) -> Bool {
            known.identifier == message.identifier && known.link != message.link && !links.contains(known.link) && isOlder(known)
        }
        if let index = messages.firstIndex(where: { $0.identifier == message.identifier && $0.link == message.link }) {
            if message.link != nil || isOlder(messages[index]) { messages[index] = message }
            // Two addresses that were listed together are addresses of two different documents.
            if keepsUnlisted { return }
        } else if let index = messages.firstIndex(where: isMoved) {
            messages[index] = message
        } else {
            messages.append(message)
        }
        messages.removeAll(where: isMoved)
    }

    /// Ends the warnings of documents that now contain a test or a draft.
    ///
    /// - Parameter current: the messages of all other documents. A message that is listed in another document is still used.
    package mutating func endEmptyDocuments(_ links: Set<String>, _ current: [AlertMessage], now: Date) {
        let back = Set(current.map { $0.identifier + Self.gone })
        messages.removeAll { back.contains($0.identifier) }
        let listed = Set(current.map(\.identifier))
        for message in messages where message.replacedBy == nil && message.kind != .cancel {
            guard let link = message.link, links.contains(link) else { continue }
            if listed.contains(message.identifier) {
                // The message is removed, because a cancellation would also end the other document with this identifier.
                messages.removeAll { $0.identifier == message.identifier && $0.link == link }
            } else {
                retract(message, now)
            }
        }
    }

    /// If a warning has no end time and the feed no longer lists the warning, the warning ends at its assumed end. The warning
    /// does not end immediately, because a feed may list only its newest warnings, and the warning may still be in force.
    package mutating func assumeUnlistedEnds(by current: [AlertMessage]) {
        let listed = Set(current.map(\.identifier))
        for index in messages.indices where !listed.contains(messages[index].identifier) {
            for info in messages[index].infos.indices { messages[index].infos[info].hasOpenEnd = nil }
        }
    }

    /// Ends warnings that a service no longer lists. The method is for services that do not send cancellations. If a warning has
    /// not expired and is no longer listed, the warning counts as cancelled. If the service lists the warning again, the warning
    /// is in force again.
    ///
    /// - Parameters:
    ///   - current: all messages that the service lists now.
    ///   - before: the messages that the service listed before.
    ///   - isNewer: `true` if the data is newer than before. Otherwise unlisted warnings are kept, and ended warnings stay ended.
    /// - Returns: the number of events that are no longer listed, but were kept because the data is not newer.
    @discardableResult
    package mutating func endMissingWarnings(
        from current: [AlertMessage], _ before: [AlertMessage], isNewer: Bool = true, now: Date
    ) -> Int {
        let listed = Set(current.map(\.identifier))
        var keptCount = 0
        if isNewer {
            messages.removeAll { message in
                message.identifier.hasSuffix(Self.gone) && !listed.isDisjoint(with: message.references)
            }
        }
        for event in events(at: nil, language: nil, now: now)
        where event.state == .standing && listed.isDisjoint(with: event.messages) {
            let missing = before.filter { message in
                event.messages.contains(message.identifier)
                    && message.infos.contains { $0.until > now || $0.hasOpenEnd == true }
            }
            if !isNewer, !missing.isEmpty { keptCount += 1 }
            for message in missing where isNewer { retract(message, now) }
        }
        return keptCount
    }

    private mutating func retract(_ message: AlertMessage, _ now: Date) {
        add(
            AlertMessage(
                identifier: message.identifier + Self.gone, sent: now, kind: .cancel, references: [message.identifier]))
    }

    /// The suffix of the identifier of a cancellation that the service did not send. Stormy creates such a cancellation if the
    /// service no longer lists a warning.
    static let gone = " gone"

    /// Removes events that do not concern a place. This is necessary because a feed contains the warnings of a complete country.
    ///
    /// - Parameter isAsked: `true` if the service was requested for this place. For such a service, messages without an area are
    ///   kept. In a feed, such a message is kept only if another message of the same event has an area that contains the place.
    package mutating func removeDistant(at place: Coordinates, isAsked: Bool) {
        let kept = groups().filter { group in
            messages.contains { message in
                group.contains(message.identifier) && message.infos.contains { $0.contains(place) ?? isAsked }
            }
        }
        let names = Set(kept.flatMap { $0 })
        messages.removeAll { !names.contains($0.identifier) }
    }

    /// Removes events that ended before a date. Newer events are kept, because a late cancellation must find its event. A warning
    /// without an end time is kept while the warning is in force.
    package mutating func prune(before date: Date) {
        let over = events(at: nil, language: nil).filter { event in
            !(event.state == .standing && event.infos.contains { $0.hasOpenEnd == true })
                && event.messages.allSatisfy { name in
                    messages.allSatisfy { message in
                        message.identifier != name || message.sent < date && message.infos.allSatisfy { $0.until < date }
                    }
                }
        }
        let gone = Set(over.flatMap(\.messages))
        messages.removeAll { gone.contains($0.identifier) }
    }

    /// Returns the events at a place.
    ///
    /// - Parameters:
    ///   - place: the place, or `nil` for all places. Messages without an area are included, because their service was requested
    ///     for this place.
    ///   - language: the reader's language, for example "en". Messages in this language are preferred.
    ///   - now: the current time. A cancellation has no effect before the time at which it was sent.
    ///   - listedAt: the time of the last response. If a warning has no end time, its assumed end is later than the next daily
    ///     check, because this check requests the service again. The assumed end is limited by the longest duration of a hazard,
    ///     because a list may be an archive of old warnings.
    package func events(
        at place: Coordinates?, language: String?, now: Date = .distantFuture, listedAt: Date? = nil
    ) -> [AlertEvent] {
        groups().map { group in
            let lineage = AlertLineage(messages.filter { group.contains($0.identifier) }, at: place, now: now)
            var infos = Self.byIdentifier(lineage.standing).flatMap { $0.infos(at: place, language: language) }
            for index in infos.indices where infos[index].hasOpenEnd == true {
                let (assumed, listed) = (infos[index].until, (listedAt ?? .distantPast) + Self.openDuration)
                infos[index].until = max(assumed, min(listed, assumed + AlertInfo.longestDuration))
            }
            return AlertEvent(messages: group.sorted(), state: lineage.isCancelled ? .cancelled : .standing, infos: infos)
        }
    }

    /// Groups documents with the same identifier, because such documents may be translations of each other.
    private static func byIdentifier(_ standing: [AlertMessage]) -> [AlertMessage] {
        var (found, known): ([AlertMessage], [String: Int]) = ([], [:])
        for message in standing {
            if let index = known[message.identifier] {
                found[index].infos += message.infos
            } else {
                known[message.identifier] = found.count
                found.append(message)
            }
        }
        return found
    }

    /// If a warning has no end time, the warning is assumed to end this number of seconds after the last response of the service.
    /// The value is a day and a half, because a daily check may be late.
    private static let openDuration: TimeInterval = 36 * 3600

    /// Returns sentences about references and cancellations that the service lists now and that Stormy does not use.
    package func unusedReferences(of current: [AlertMessage], now: Date) -> [String] {
        let listed = Set(current.map(\.identifier))
        let unread = current.count { $0.kind == .cancel && $0.references.isEmpty }
        let unusable = unread == 0 ? [] : ["\(unread) of the cancellations do not name their warnings, and are not used"]
        return unusable
            + groups().filter { !listed.isDisjoint(with: $0) }.flatMap { group in
                AlertLineage(messages.filter { group.contains($0.identifier) }, at: nil, now: now).unusedReferences(of: listed)
            }
    }

    /// Groups the identifiers that are connected by references, directly or through other messages.
    private func groups() -> [Set<String>] {
        var group: [String: Int] = [:]
        var groups: [Int: Set<String>] = [:]
        for (number, message) in messages.enumerated() {
            var members = Set([message.identifier] + message.references + [message.replacedBy].compactMap { $0 })
            for other in Set(members.compactMap { group[$0] }) { members.formUnion(groups.removeValue(forKey: other) ?? []) }
            for name in members { group[name] = number }
            groups[number] = members
        }
        return groups.sorted { $0.key < $1.key }.map(\.value)
    }
}
