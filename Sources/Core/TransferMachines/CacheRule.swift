import Foundation

/// What a private cache may keep, and how long it may say it without asking. Source of the rule: RFC 9111.
package enum CacheRule {
    package enum State: Equatable, Sendable {
        case fresh
        /// To be asked about with these headers; without any the whole is asked for again.
        case stale(validators: [HeaderField])
    }

    /// Whether an answer to a GET may be kept.
    ///
    /// Stricter than the rule: what a password was sent for is not kept, nor what depends on other headers than the coding.
    /// - Parameter request: its headers, as they were sent.
    package static func mayKeep(_ head: ResponseHead, request: [HeaderField]) -> Bool {
        guard [200, 203, 404, 410].contains(head.status) else { return false }
        let directives = cacheControl(head.headers)
        guard directives["no-store"] == nil, cacheControl(request)["no-store"] == nil else { return false }
        guard !request.contains(where: { ["authorization", "range"].contains($0.name.lowercased()) }) else { return false }
        let varies = values("vary", head.headers).map { $0.lowercased() }
        guard varies.allSatisfy({ $0 == "accept-encoding" }) else { return false }
        return lifetime(head, directives) != nil || !validators(head).isEmpty
    }

    /// - Parameters:
    ///   - head: as it was kept; with the date on which the server made it.
    ///   - request: headers of who asks now.
    package static func state(of head: ResponseHead, request: [HeaderField], now: Date) -> State {
        let directives = cacheControl(head.headers)
        let asked = cacheControl(request)
        let stale = State.stale(validators: validators(head))
        guard directives["no-cache"] == nil, asked["no-cache"] == nil, let made = head["Date"].flatMap({ HTTPDate.parse($0) }),
            let lifetime = lifetime(head, directives)
        else { return stale }
        let age = now.timeIntervalSince(made) + (head["Age"].flatMap(Double.init) ?? 0)
        // A clock that is behind makes nothing young for ever.
        guard age >= -1, age < lifetime else { return stale }
        if let limit = asked["max-age"].flatMap({ Double($0 ?? "") }), age > limit { return stale }
        return .fresh
    }

    /// An answer whose server has no clock is as old as its receipt (RFC 9110, 6.6.1).
    package static func dated(_ headers: [HeaderField], received: Date) -> [HeaderField] {
        let isDated = headers.contains { $0.name.lowercased() == "date" && HTTPDate.parse($0.value) != nil }
        guard !isDated else { return headers }
        return headers.filter { $0.name.lowercased() != "date" } + [HeaderField("Date", HTTPDate.text(received))]
    }

    /// What was kept, after the server said that it holds: with the headers of the 304.
    package static func renewed(_ head: ResponseHead, by answer: ResponseHead, received: Date) -> ResponseHead {
        var renewed = head
        let headers = dated(answer.headers, received: received)
        let replaced = Set(headers.map { $0.name.lowercased() }).subtracting(["content-length", "content-encoding"])
        renewed.headers.removeAll { replaced.contains($0.name.lowercased()) }
        renewed.headers += headers.filter { replaced.contains($0.name.lowercased()) }
        return renewed
    }

    /// Seconds; `nil`: the server does not say.
    private static func lifetime(_ head: ResponseHead, _ directives: [String: String?]) -> Double? {
        if let seconds = directives["max-age"].flatMap({ Double($0 ?? "") }) { return seconds }
        guard let expires = head["Expires"] else { return nil }
        // What is no date ("0", often) has expired.
        guard let end = HTTPDate.parse(expires), let made = head["Date"].flatMap({ HTTPDate.parse($0) }) else { return 0 }
        return end.timeIntervalSince(made)
    }

    private static func validators(_ head: ResponseHead) -> [HeaderField] {
        [("ETag", "If-None-Match"), ("Last-Modified", "If-Modified-Since")].compactMap { name, question in
            head[name].map { HeaderField(question, $0) }
        }
    }

    private static func cacheControl(_ headers: [HeaderField]) -> [String: String?] {
        var found: [String: String?] = [:]
        for word in values("cache-control", headers) {
            let pair = word.split(separator: "=", maxSplits: 1)
            guard let name = pair.first else { continue }
            let value = pair.count == 2 ? pair[1].trimmingCharacters(in: ["\"", " "]) : nil
            let key = name.trimmingCharacters(in: .whitespaces).lowercased()
            // Of two ages the lesser counts (RFC 9111, 4.2.1, advises the stricter).
            if let known = found[key], let earlier = known.flatMap(Double.init), let later = value.flatMap({ Double($0) }),
                earlier < later
            {
                continue
            }
            found[key] = .some(value)
        }
        return found
    }

    private static func values(_ name: String, _ headers: [HeaderField]) -> [String] {
        headers.filter { $0.name.lowercased() == name }.flatMap { $0.value.split(separator: ",") }
            .map { $0.trimmingCharacters(in: .whitespaces) }
    }
}
