import Foundation

/// The upload resource that the server created for a file (the place for the file). The type also counts the places that were
/// created and lost. The header `Location` contains the address of the place.
struct UploadPlace {
    /// The maximum number of places for one file. Without a maximum, a server that loses each place would receive requests
    /// endlessly.
    static let maximumCreations = 5

    private(set) var address: String?
    private(set) var creations: Int
    /// The address before a redirect. `nil` if a response confirmed the current address.
    private var earlier: String?
    /// The number of consecutive responses that reported that the place for the file does not exist. A program other than the
    /// server may have sent these responses.
    private var denials = 0

    init(_ memory: UploadMemory?) {
        address = memory?.place
        creations = memory?.creations ?? 0
    }

    mutating func made(at address: String) {
        self.address = address
        creations += 1
    }

    /// Records another address of the same place.
    mutating func moved(to address: String) { (earlier, self.address) = (earlier ?? self.address, address) }

    /// Records that the server reported the number of stored bytes of the file.
    mutating func isThere() { (earlier, denials) = (nil, 0) }

    /// Returns whether the request about the place is repeated after a response that reports that the place does not exist.
    ///
    /// A proxy or a captive portal may have sent the response, while the server may have the complete file. If a second place
    /// were created, the server would then have the file twice. So the request is repeated up to three times, at the address
    /// before a redirect.
    mutating func asksAgain() -> Bool {
        if let earlier { (address, self.earlier) = (earlier, nil) }
        denials = (denials + 1) % NameDoubt.maximumChecks
        return denials != 0
    }

    static let unknownOffset = "The server does not report how much of the file was received."
    static let thrownAway = "The server has discarded the received part of the file."

    /// The statuses of responses that do not show how many bytes of the file the server has stored.
    private static let denials: Set<Int> = [400, 401, 403, 404, 405, 406, 407, 410, 415, 422, 451, 501]

    /// Returns the outcome of a response about the place, if a program other than the server may have sent the response.
    ///
    /// - Parameter isServers: `true` if the response contains a header of the protocol.
    /// - Returns: `nil` if the response is accepted as the response of the server.
    mutating func afterForeign(_ head: ResponseHead, isServers: Bool, _ pauses: Pauses) -> UploadOutcome? {
        guard head["Upload-Offset"] == nil else { return nil }
        if head.mayBeOfAPortal, pauses.policy.suspicionDelay != nil { return pauses.page(head) }
        let isDenial = (200..<300).contains(head.status) || Self.denials.contains(head.status)
        guard isDenial, !isServers, asksAgain() else { return nil }
        return pauses.retry(head, Self.unknownOffset)
    }

    /// Handles a place that does not exist any more or that belongs to another upload.
    mutating func lose(_ head: ResponseHead, _ pauses: Pauses, _ why: String) -> UploadOutcome {
        guard creations < Self.maximumCreations else { return .fail(head, -1011, "\(why) This happened \(creations) times.") }
        address = nil
        return pauses.retry(head, why)
    }

    /// Removes the address, because no place was created at it.
    mutating func forget() { address = nil }

    /// Returns the absolute address of the place. If a proxy handles TLS, the server behind the proxy reports an http address. So
    /// the scheme and the port of the used address are kept.
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
