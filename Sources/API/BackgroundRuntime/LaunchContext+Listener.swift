extension LaunchContext {
    /// A session's delegate, in a launch that may be for the events of this session.
    package struct Listener: Sendable {
        let session: String
        /// Returns whether the delegate has received all events that waited for it.
        let hasReceivedAll: @Sendable () -> Bool
        /// Returns when the delegate has received all waiting events.
        let waitForAllEvents: @Sendable () async -> Void
        /// Leaves the remaining events, because the launch does not wait any more.
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
