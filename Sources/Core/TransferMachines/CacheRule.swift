import Foundation

/// Decides whether a private cache is allowed to store a response, and for how long the stored response is fresh. RFC 9111
/// defines these rules.
package enum CacheRule {
    package enum State: Equatable, Sendable {
        case fresh
        /// The response has to be revalidated with these headers. If the list is empty, the complete response has to be requested
        /// again.
        case stale(validators: [HeaderField])
    }

    /// Returns whether a cache is allowed to store a response to a GET.
    ///
    /// This method is stricter than RFC 9111. A response is not stored if its request has a password. A response is also not
    /// stored if it varies with headers other than the content coding.
    /// - Parameter request: The headers of the request that was sent.
    package static func mayKeep(_ head: ResponseHead, request: [HeaderField]) -> Bool {
        guard [200, 203, 404, 410].contains(head.status) else { return false }
        let directives = cacheControl(head.headers)
        guard directives["no-store"] == nil, cacheControl(request)["no-store"] == nil else { return false }
        guard !request.contains(where: { ["authorization", "range"].contains($0.name.lowercased()) }) else { return false }
        let varies = values("vary", head.headers).map { $0.lowercased() }
        guard varies.allSatisfy({ $0 == "accept-encoding" }) else { return false }
        return lifetime(head, directives) != nil || !validators(head).isEmpty
    }

    /// Returns whether a stored response is fresh.
    ///
    /// - Parameters:
    ///   - head: The stored response headers, which contain the date at which the server created the response.
    ///   - request: The headers of the new request, for which a stored response was found.
    package static func state(of head: ResponseHead, request: [HeaderField], now: Date) -> State {
        let directives = cacheControl(head.headers)
        let asked = cacheControl(request)
        let stale = State.stale(validators: validators(head))
        guard directives["no-cache"] == nil, asked["no-cache"] == nil, let made = head["Date"].flatMap({ HTTPDate.parse($0) }),
            let lifetime = lifetime(head, directives)
        else { return stale }
        let age = now.timeIntervalSince(made) + (head["Age"].flatMap(Double.init) ?? 0)
        // A response with a date in the future is stale. Otherwise a clock that is behind would keep the response fresh
        // endlessly.
        guard age >= -1, age < lifetime else { return stale }
        if let limit = asked["max-age"].flatMap({ Double($0 ?? "") }), age > limit { return stale }
        return .fresh
    }

    /// Returns the headers with the header `Date`. If the server sent no valid date, the date of receipt is added (RFC 9110,
    /// 6.6.1).
    package static func dated(_ headers: [HeaderField], received: Date) -> [HeaderField] {
        let isDated = headers.contains { $0.name.lowercased() == "date" && HTTPDate.parse($0.value) != nil }
        guard !isDated else { return headers }
        return headers.filter { $0.name.lowercased() != "date" } + [HeaderField("Date", HTTPDate.text(received))]
    }

    /// Returns the stored response headers, updated with the headers of a 304 response. The 304 response confirmed that the
    /// stored response is still valid.
    package static func renewed(_ head: ResponseHead, by answer: ResponseHead, received: Date) -> ResponseHead {
        var renewed = head
        let headers = dated(answer.headers, received: received)
        let replaced = Set(headers.map { $0.name.lowercased() }).subtracting(["content-length", "content-encoding"])
        renewed.headers.removeAll { replaced.contains($0.name.lowercased()) }
        renewed.headers += headers.filter { replaced.contains($0.name.lowercased()) }
        return renewed
    }

    /// Returns the lifetime of the response in seconds, or `nil` if its headers state no lifetime.
    private static func lifetime(_ head: ResponseHead, _ directives: [String: String?]) -> Double? {
        if let seconds = directives["max-age"].flatMap({ Double($0 ?? "") }) { return seconds }
        guard let expires = head["Expires"] else { return nil }
        // An invalid date (often "0") means that the response has expired.
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
            // A directive may occur twice with different numbers. The lower number is used (RFC 9111, 4.2.1, advises the stricter
            // value).
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
