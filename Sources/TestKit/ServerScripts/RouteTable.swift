import Synchronization

/// The table of routes. The table determines the response to each request.
package final class RouteTable: Sendable {
    package enum Responder {
        /// A list of scripts. Each request uses the next script. The last script is used for all further requests.
        case scripts([ResponseScript], next: Int)
        case handler(@Sendable (RecordedRequest) -> ResponseScript)
        case store(any MountedStore)
    }

    private struct Route {
        let method: String?
        let pattern: String
        var responder: Responder

        /// Returns how closely the route fits; `nil` if the route does not fit. An exact path fits better than a prefix. A longer
        /// prefix fits better than a shorter prefix. A route with a method fits better than a route for any method.
        package func rank(_ request: RecordedRequest) -> Int? {
            if let method, method != request.method { return nil }
            let methodBonus = method == nil ? 0 : 1
            if pattern == request.path { return 1_000_000 + methodBonus }
            guard pattern.hasSuffix("*"), request.path.hasPrefix(pattern.dropLast()) else { return nil }
            return pattern.utf8.count * 2 + methodBonus
        }
    }

    private let routes = Mutex<[Route]>([])

    package init() {}

    /// Sets the response for a method and a pattern. The new response replaces an earlier response for the same method and
    /// pattern.
    package func set(_ method: String?, _ pattern: String, _ responder: Responder) {
        routes.withLock { routes in
            routes.removeAll { $0.method == method && $0.pattern == pattern }
            routes.append(Route(method: method, pattern: pattern, responder: responder))
        }
    }

    /// Sets a list of scripts. Each request uses the next script. The last script is used for all further requests.
    package func set(_ method: String?, _ pattern: String, _ scripts: [ResponseScript]) {
        precondition(!scripts.isEmpty, "a route needs a script")
        set(method, pattern, .scripts(scripts, next: 0))
    }

    /// Adds the routes of a store. The store handles all requests whose path begins with its prefix.
    package func mount(_ store: some UploadStore) {
        guard let store = store as? any MountedStore else { preconditionFailure("the store is not a MountedStore") }
        set(nil, store.prefix, .store(store))
        set(nil, store.prefix + "/*", .store(store))
    }

    /// Returns whether a route matches this request.
    package func knows(_ request: RecordedRequest) -> Bool { routes.withLock { $0.contains { $0.rank(request) != nil } } }

    /// Returns the exchange that handles a request. If the route has a list of scripts, one script is consumed.
    package func exchange(for request: RecordedRequest) -> any Exchange {
        let responder: Responder? = routes.withLock { routes in
            let ranked = routes.indices.compactMap { index in routes[index].rank(request).map { (index, $0) } }
            guard let best = ranked.max(by: { $0.1 < $1.1 })?.0 else { return nil }
            let responder = routes[best].responder
            if case .scripts(let scripts, let next) = responder {
                routes[best].responder = .scripts(scripts, next: min(next + 1, scripts.count - 1))
            }
            return responder
        }
        switch responder {
        case nil: return ScriptedExchange(.status(404, body: "no such route"))
        case .scripts(let scripts, let next): return ScriptedExchange(scripts[next])
        case .handler(let handler): return ScriptedExchange(handler(request))
        case .store(let store): return store.exchange(for: request)
        }
    }
}
