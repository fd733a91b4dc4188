import Foundation

extension BGTaskScheduler {
    /// The domain of ``BGTaskScheduler/Error`` as an `NSError`.
    public static let errorDomain = "BGTaskSchedulerErrorDomain"

    /// The reason that a request was not accepted.
    ///
    /// The type has the same form as an error type that Swift imports from Objective-C. Each static property is an error code, so
    /// that code for iOS compiles: `catch BGTaskScheduler.Error.notPermitted`, `error.code == .notPermitted`.
    public struct Error: Swift.Error, Hashable, Sendable, CustomNSError, LocalizedError {
        /// The error codes, with Apple's numbers.
        public enum Code: Int, Sendable {
            /// The ledger cannot be written, or no agent is available for continued processing.
            case unavailable = 1
            /// The maximum number of pending requests is reached: 1 refresh request, 10 processing requests.
            case tooManyPendingTaskRequests = 2
            /// The identifier is not in `BGTaskSchedulerPermittedIdentifiers`, or the request requires a resource that this
            /// machine does not have.
            case notPermitted = 3
            /// A continued-processing request with the strategy `.fail` could not start immediately.
            case immediateRunIneligible = 4

            /// Returns whether an error has this code, so that a code can be used as a pattern.
            public static func ~= (code: Code, error: any Swift.Error) -> Bool { (error as? Error)?.code == code }
        }

        /// The kind of refusal. Errors are compared by their codes.
        public let code: Code
        /// The reason, as a sentence for the user. Apple's API has no equivalent.
        public let reason: String
        /// The error that caused this error, if the code is ``Code/unavailable``. Apple's API has no equivalent.
        public let underlyingError: (any Swift.Error)?

        /// - Parameters:
        ///   - code: the kind of refusal.
        ///   - userInfo: a dictionary. Only the value of `NSLocalizedDescriptionKey` is used.
        public init(_ code: Code, userInfo: [String: Any] = [:]) {
            self.init(code, userInfo[NSLocalizedDescriptionKey] as? String ?? "")
        }

        init(_ code: Code, _ reason: String, underlyingError: (any Swift.Error)? = nil) {
            self.code = code
            self.reason = reason
            self.underlyingError = underlyingError
        }

        /// The code ``Code/unavailable``.
        public static var unavailable: Code { .unavailable }
        /// The code ``Code/tooManyPendingTaskRequests``.
        public static var tooManyPendingTaskRequests: Code { .tooManyPendingTaskRequests }
        /// The code ``Code/notPermitted``.
        public static var notPermitted: Code { .notPermitted }
        /// The code ``Code/immediateRunIneligible``.
        public static var immediateRunIneligible: Code { .immediateRunIneligible }

        /// Returns whether two errors have the same code. The reasons are not compared.
        public static func == (one: Error, other: Error) -> Bool { one.code == other.code }
        /// Hashes the code, so that equal errors have equal hash values.
        public func hash(into hasher: inout Hasher) { hasher.combine(code) }

        /// The domain ``BGTaskScheduler/errorDomain``.
        public static var errorDomain: String { BGTaskScheduler.errorDomain }
        /// The number of the code.
        public var errorCode: Int { code.rawValue }
        /// A dictionary that contains only the description.
        public var errorUserInfo: [String: Any] { [NSLocalizedDescriptionKey: errorDescription ?? ""] }
        /// The reason, or the name of the code if the reason is empty.
        public var errorDescription: String? { reason.isEmpty ? "\(code)" : reason }
    }
}
