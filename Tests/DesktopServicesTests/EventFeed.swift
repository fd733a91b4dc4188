import BackgroundNotices
import Synchronization

/// Events of a callback, to be awaited one after the other.
final class EventFeed<Event: Sendable>: Sendable {
    let send: @Sendable (Event) -> Void
    private let stream: AsyncStream<Event>

    init() {
        let (stream, continuation) = AsyncStream.makeStream(of: Event.self)
        self.stream = stream
        send = { continuation.yield($0) }
    }

    /// The next event; throws when the test's time is over.
    func next() async throws -> Event {
        for await event in stream { return event }
        throw FixtureFailure("no further event came")
    }

    /// The first event that fits; others before it are skipped.
    func first(where fits: (Event) -> Bool) async throws -> Event {
        while true {
            let event = try await next()
            if fits(event) { return event }
        }
    }
}

/// Which server gave the ids, as a presenter told it last.
final class KnownServer: Sendable {
    private let told = Mutex<String?>(nil)
    private let taken = Mutex<[UInt32]>([])
    private let buttons = Mutex<Bool?>(nil)
    /// The same, to be awaited: a withdrawal is told when the server has answered it.
    let withdrawals = EventFeed<UInt32>()

    /// Numbers of what it was told to take off the screen.
    var withdrawn: [UInt32] { taken.withLock { $0 } }

    /// Whether it shows buttons; `nil`: it was not told.
    var hasButtons: Bool? { buttons.withLock { $0 } }

    var identity: String? { told.withLock { $0 } }

    /// Keeps what is told of servers and withdrawals, and passes everything else on.
    func ear(_ events: EventFeed<PresenterEvent>) -> @Sendable (PresenterEvent) -> Void {
        { event in
            switch event {
            case .serverIs(let identity): self.told.withLock { $0 = identity }
            case .serverHasButtons(let hasButtons, _): self.buttons.withLock { $0 = hasButtons }
            case .withdrawn(_, let number):
                self.taken.withLock { $0.append(number) }
                self.withdrawals.send(number)
            default: events.send(event)
            }
        }
    }
}
