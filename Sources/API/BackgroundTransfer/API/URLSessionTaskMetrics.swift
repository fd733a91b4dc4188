import Foundation
import FoundationNetworking

/// How a task went.
///
/// Differs from Apple: of a background task only the times of the whole and the number of its attempts are known, not those
/// of names, connections and handshakes: the agent made them, often several times.
open class URLSessionTaskMetrics: NSObject, @unchecked Sendable {  // because nothing of it changes
    /// From the task's making to its end.
    public let taskInterval: DateInterval
    /// Of a background task always 0: redirects are followed by the agent and not counted.
    public let redirectCount: Int
    /// One, of the request that brought the answer.
    public let transactionMetrics: [URLSessionTaskTransactionMetrics]
    /// Requests that were made; more than one after interruptions. Beyond Apple.
    public let attemptCount: Int

    init(taskInterval: DateInterval, attemptCount: Int, transaction: URLSessionTaskTransactionMetrics?, redirectCount: Int = 0) {
        self.taskInterval = taskInterval
        self.redirectCount = redirectCount
        self.attemptCount = attemptCount
        transactionMetrics = transaction.map { [$0] } ?? []
    }
}

/// One request and its answer.
open class URLSessionTaskTransactionMetrics: NSObject, @unchecked Sendable {  // because nothing of it changes
    /// The request as it was sent.
    public let request: URLRequest
    /// What answered; `nil`: nobody did.
    public let response: URLResponse?
    /// When the attempt began.
    public let fetchStartDate: Date?
    /// When the last byte came, or the attempt ended.
    public let responseEndDate: Date?
    /// Over all attempts.
    public let countOfResponseBodyBytesReceived: Int64
    /// Over all attempts.
    public let countOfRequestBodyBytesSent: Int64

    init(
        request: URLRequest, response: URLResponse?, fetchStartDate: Date?, responseEndDate: Date?, received: Int64, sent: Int64
    ) {
        self.request = request
        self.response = response
        self.fetchStartDate = fetchStartDate
        self.responseEndDate = responseEndDate
        countOfResponseBodyBytesReceived = received
        countOfRequestBodyBytesSent = sent
    }
}
