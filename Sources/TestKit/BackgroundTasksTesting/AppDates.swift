extension TestDriver {
    /// The clock that the dates of the app under test belong to.
    ///
    /// Concerns `earliestBeginDate` of requests and of transfers, and `expirationDate` of notifications, in both directions. Rules of the
    /// person's clock (`recurrence`, calendar triggers) are always read on the virtual clock, and time intervals need no clock.
    public enum AppDates: Sendable {
        /// The driver's ``TestDriver/clock``: the app, and the test, take the time from there.
        case virtualClock
        /// The real clock: the app calls `Date()`, as in `Date(timeIntervalSinceNow: 6 * 3600)`.
        ///
        /// A date that is six hours ahead of the real clock when the app hands it over means six hours ahead of the virtual clock. The real
        /// time between the two calls is lost, so a test compares with a tolerance. Dates of ``TestDriver/clock`` do not fit into
        /// such a test; reports of the driver show the virtual clock.
        case realClock
    }
}
