import Foundation

/// The place for a file that a server made and names in `Location`; and how many it has made and lost.
struct UploadPlace {
    /// Places made for one file before it is given up: a server that loses each at once would be asked for ever.
    static let maximumCreations = 5

    private(set) var address: String?
    private(set) var creations: Int
    /// The address before a redirect. `nil` if a response confirmed the present address.
    private var earlier: String?
    /// Responses in a row that deny the place and may come from another program than the server.
    private var denials = 0

    init(_ memory: UploadMemory?) {
        address = memory?.place
        creations = memory?.creations ?? 0
    }

    mutating func made(at address: String) {
        self.address = address
        creations += 1
    }

    /// The same place under another address.
    mutating func moved(to address: String) { (earlier, self.address) = (earlier ?? self.address, address) }

    /// The server said how much of the file is at the place.
    mutating func isThere() { (earlier, denials) = (nil, 0) }

    /// Returns whether the question about the place is repeated after a response that denies it.
    ///
    /// A proxy or a network with a log-in page can be the source of the response. The server itself may have all of the file, and a second
    /// place would be a second copy. So the question is repeated up to three times, at the address before a redirect.
    mutating func asksAgain() -> Bool {
        if let earlier { (address, self.earlier) = (earlier, nil) }
        denials = (denials + 1) % NameDoubt.maximumLooks
        return denials != 0
    }

    static let unknownOffset = "The server does not say how much of the file it has."
    static let thrownAway = "The server has thrown away what it had of the file."

    /// Responses that do not say how much of the file is at a place.
    private static let denials: Set<Int> = [400, 401, 403, 404, 405, 406, 407, 410, 415, 422, 451, 501]

    /// The outcome of a response to the question about the place if another program may have given it.
    ///
    /// - Parameter isServers: The response has a mark of the protocol.
    /// - Returns: `nil` if the response counts.
    mutating func afterForeign(_ head: ResponseHead, isServers: Bool, _ pauses: Pauses) -> UploadOutcome? {
        guard head["Upload-Offset"] == nil else { return nil }
        if head.mayBeOfAPortal, pauses.policy.suspicionDelay != nil { return pauses.page(head) }
        let isDenial = (200..<300).contains(head.status) || Self.denials.contains(head.status)
        guard isDenial, !isServers, asksAgain() else { return nil }
        return pauses.retry(head, Self.unknownOffset)
    }

    /// It is not there any more, or another's.
    mutating func lose(_ head: ResponseHead, _ pauses: Pauses, _ why: String) -> UploadOutcome {
        guard creations < Self.maximumCreations else { return .fail(head, -1011, "\(why) It did so \(creations) times.") }
        address = nil
        return pauses.retry(head, why)
    }

    /// None was made after all.
    mutating func forget() { address = nil }

    /// Absolute or relative. A server behind a proxy that ends TLS names itself with http: the address we came by counts.
    static func address(of location: String?, madeAt address: String) -> String? {
        guard let location, !location.isEmpty, let home = URL(string: address),
            let target = URL(string: location, relativeTo: home)?.absoluteURL, let host = target.host, !host.isEmpty
        else { return nil }
        switch (home.scheme?.lowercased(), target.scheme?.lowercased()) {
        case (_, "https"), ("http", "http"): return target.absoluteString
        case ("https", "http"):
            guard host.lowercased() == home.host?.lowercased() else { return nil }
            guard var parts = URLComponents(url: target, resolvingAgainstBaseURL: true) else { return nil }
            (parts.scheme, parts.port) = (home.scheme, home.port)
            return parts.string
        default: return nil
        }
    }
}
