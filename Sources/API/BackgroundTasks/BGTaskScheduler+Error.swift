import Foundation

extension BGTaskScheduler {
    /// The domain of ``BGTaskScheduler/Error`` seen as an `NSError`.
    public static let errorDomain = "BGTaskSchedulerErrorDomain"

    /// Why a request was not accepted.
    ///
    /// In the shape of an imported error: its static names are codes, usable where a code is asked for and in patterns:
    /// `catch BGTaskScheduler.Error.notPermitted`, `error.code == .notPermitted`.
    public struct Error: Swift.Error, Hashable, Sendable, CustomNSError, LocalizedError {
        /// Apple's numbers.
        public enum Code: Int, Sendable {
            /// The ledger cannot be written, or no agent is there for continued processing.
            case unavailable = 1
            /// 1 refresh request and 10 processing requests may be pending.
            case tooManyPendingTaskRequests = 2
            /// The identifier is not in `BGTaskSchedulerPermittedIdentifiers`, or what it asks for is not to be had here.
            case notPermitted = 3
            /// A continued-processing request with `.fail` could not start at once.
            case immediateRunIneligible = 4

            /// So that a code catches the error that carries it.
            public static func ~= (code: Code, error: any Swift.Error) -> Bool { (error as? Error)?.code == code }
        }

        /// What kind of refusal it is; what errors are compared by.
        public let code: Code
        /// What was wrong and where, for people. Beyond Apple.
        public let reason: String
        /// What went wrong below, for ``Code/unavailable``. Beyond Apple.
        public let underlyingError: (any Swift.Error)?

        /// - Parameters:
        ///   - code: what kind of refusal it is.
        ///   - userInfo: only `NSLocalizedDescriptionKey` is kept.
        public init(_ code: Code, userInfo: [String: Any] = [:]) {
            self.init(code, userInfo[NSLocalizedDescriptionKey] as? String ?? "")
        }

        init(_ code: Code, _ reason: String, underlyingError: (any Swift.Error)? = nil) {
            self.code = code
            self.reason = reason
            self.underlyingError = underlyingError
        }

        /// ``Code/unavailable``.
        public static var unavailable: Code { .unavailable }
        /// ``Code/tooManyPendingTaskRequests``.
        public static var tooManyPendingTaskRequests: Code { .tooManyPendingTaskRequests }
        /// ``Code/notPermitted``.
        public static var notPermitted: Code { .notPermitted }
        /// ``Code/immediateRunIneligible``.
        public static var immediateRunIneligible: Code { .immediateRunIneligible }

        /// The reason is for reading, the code for comparing.
        public static func == (one: Error, other: Error) -> Bool { one.code == other.code }
        /// As ``==(_:_:)`` compares.
        public func hash(into hasher: inout Hasher) { hasher.combine(code) }

        /// ``BGTaskScheduler/errorDomain``.
        public static var errorDomain: String { BGTaskScheduler.errorDomain }
        /// The code's number.
        public var errorCode: Int { code.rawValue }
        /// The description alone.
        public var errorUserInfo: [String: Any] { [NSLocalizedDescriptionKey: errorDescription ?? ""] }
        /// The reason, or the code's name without one.
        public var errorDescription: String? { reason.isEmpty ? "\(code)" : reason }
    }
}
