/// The promised result of each cell of the matrix, word for word. In most cells the result is the same as without the event.
enum MatrixPromises {
    static let usual: [MatrixState: String] = [
        .checkWaitsForNoon: "check completed, at 12:00, shown 1×",
        .checkIsAsking: "check completed, shown 1×",
        .checkHandedOver: "check expired, delivery completed, shown 1×",
        .answerIsBeingDelivered: "delivery completed, shown 1×",
        .downloadIsQueued: "completed, version 1, complete",
        .downloadIsRunning: "completed, version 1, complete",
        .downloadIsWaiting: "completed, version 1, complete",
        .downloadIsPaused: "completed, version 1, complete",
        .uploadIsQueued: "completed, on the server 1×, reported 1×",
        .uploadIsRunning: "completed, on the server 1×, reported 1×",
        .uploadAwaitsItsAnswer: "completed, on the server 1×, reported 1×",
        .uploadIsWaiting: "completed, on the server 1×, reported 1×",
        .noticeIsPending: "shown 1×, delivered",
        .noticeIsBeingShown: "shown 1×, delivered",
        .noticeStands: "shown 1×, delivered",
        .noticeWasPressed: "shown 1×, closed, received 1×",
    ]

    static let exceptions: [MatrixState: [MatrixCause: String]] = [
        .checkWaitsForNoon: [
            .personCancels: "shown 0×",
            // The missed noon check runs as soon as possible.
            .clockIsSteppedForward: "check completed, at 13:00, shown 1×",
            .machineSleeps: "check completed, at 13:00, shown 1×",
        ],
        .checkIsAsking: [
            .timeRunsOut: handedOver, .appIsTerminated: handedOver, .logout: handedOver,
            // The response arrives after the time of the check has ended.
            .serverIsGone: handedOver, .diskIsFull: handedOver,
            .appIsKilled: "check crashed, check completed, shown 1×", .bothAreKilled: "check crashed, check completed, shown 1×",
            .personCancels: "check failed, shown 0×",
        ],
        .checkHandedOver: [.personCancels: "check expired, delivery completed, shown 0×"],
        .answerIsBeingDelivered: [
            .timeRunsOut: deliveredAgain, .appIsTerminated: deliveredAgain, .logout: deliveredAgain,
            .appIsKilled: "delivery crashed, delivery completed, shown 1×",
            .bothAreKilled: "delivery crashed, delivery completed, shown 1×",
        ],
        .downloadIsQueued: [.personCancels: cancelledDownload, .serverChangesTheFile: "completed, version 2, complete"],
        .downloadIsRunning: [.personCancels: cancelledDownload, .serverChangesTheFile: startedOver],
        .downloadIsWaiting: [.personCancels: cancelledDownload, .serverChangesTheFile: "completed, version 2, complete"],
        .downloadIsPaused: [.personCancels: cancelledDownload, .serverChangesTheFile: startedOver],
        .uploadIsQueued: [.personCancels: cancelledUpload],
        .uploadIsRunning: [.personCancels: cancelledUpload],
        .uploadAwaitsItsAnswer: [.personCancels: cancelledUpload],
        .uploadIsWaiting: [.personCancels: cancelledUpload],
        .noticeIsPending: [.personCancels: "shown 0×, withdrawn"],
        .noticeIsBeingShown: [
            .personCancels: "shown 1×, withdrawn",
            // The next agent cannot determine whether the notification was shown, and shows the notification again. A server that
            // replaces notifications by tag still shows only one notification.
            .agentIsKilled: "shown 2×, delivered", .bothAreKilled: "shown 2×, delivered",
        ],
        .noticeStands: [.personCancels: "shown 1×, withdrawn", .notificationServerIsGone: "shown 2×, delivered"],
    ]

    private static let handedOver = "check expired, delivery completed, shown 1×"
    private static let deliveredAgain = "delivery expired, delivery completed, shown 1×"
    private static let cancelledDownload = "cancelled, cancelled reported"
    private static let startedOver = "completed, version 2, complete, started again"
    private static let cancelledUpload = "cancelled, on the server 0×, reported 1×"
}
