extension LaunchContext {
    /// The delegate of a background session in a launch. The launch may have another reason than the events of this session.
    package struct Listener: Sendable {
        let session: String
        /// A closure that returns whether the delegate has received all waiting events.
        let hasReceivedAll: @Sendable () -> Bool
        /// A closure that waits until the delegate has received all waiting events.
        let waitForAllEvents: @Sendable () async -> Void
        /// A closure that makes `waitForAllEvents` return before all events were received.
        let skipRemainingEvents: @Sendable () -> Void

        package init(
            session: String, hasReceivedAll: @escaping @Sendable () -> Bool,
            waitForAllEvents: @escaping @Sendable () async -> Void,
            skipRemainingEvents: @escaping @Sendable () -> Void
        ) {
            (self.session, self.hasReceivedAll, self.waitForAllEvents, self.skipRemainingEvents) = (
                session, hasReceivedAll, waitForAllEvents, skipRemainingEvents
            )
        }
    }
}
