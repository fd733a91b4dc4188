import BackgroundNotices
import Synchronization

/// A queue of events from a callback. A test can wait for the events one after the other.
final class EventFeed<Event: Sendable>: Sendable {
    let send: @Sendable (Event) -> Void
    private let stream: AsyncStream<Event>

    init() {
        let (stream, continuation) = AsyncStream.makeStream(of: Event.self)
        self.stream = stream
        send = { continuation.yield($0) }
    }

    /// Waits for the next event. Throws an error if the test's time is over.
    func next() async throws -> Event {
        for await event in stream { return event }
        throw FixtureFailure("no further event came")
    }

    /// Waits for the first event that meets the condition, and skips other events.
    func first(where fits: (Event) -> Bool) async throws -> Event {
        while true {
            let event = try await next()
            if fits(event) { return event }
        }
    }
}

/// Stores facts from the latest reports of a presenter, for example which server assigned the identifiers.
final class KnownServer: Sendable {
    private let told = Mutex<String?>(nil)
    private let taken = Mutex<[UInt32]>([])
    private let buttons = Mutex<Bool?>(nil)
    /// The numbers of removed notifications. A test can wait for the next number, which arrives after the server has confirmed
    /// the removal.
    let withdrawals = EventFeed<UInt32>()

    /// The numbers of all notifications that the server has removed on request.
    var withdrawn: [UInt32] { taken.withLock { $0 } }

    /// `true` if the server shows buttons; `nil` if this was not reported.
    var hasButtons: Bool? { buttons.withLock { $0 } }

    var identity: String? { told.withLock { $0 } }

    /// Returns a handler that stores facts about servers and removed notifications. The handler passes other events on.
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
