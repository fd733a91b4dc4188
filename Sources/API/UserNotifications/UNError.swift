import Foundation

/// The reason why a notification was not accepted.
public struct UNError: Error, Sendable, Equatable, CustomNSError, LocalizedError {
    /// The error codes, with Apple's numbers.
    public enum Code: Int, Sendable {
        case notificationsNotAllowed = 1
        case attachmentInvalidURL = 100
        case attachmentUnrecognizedType = 101
        case attachmentInvalidFileSize = 102
        case attachmentNotInDataStore = 103
        case attachmentMoveIntoDataStoreFailed = 104
        case attachmentCorrupt = 105
        case notificationInvalidNoDate = 1400
        case notificationInvalidNoContent = 1401
        case contentProvidingObjectNotAllowed = 1500
        case contentProvidingInvalid = 1501
        case badgeInputInvalid = 1600
    }

    /// The error code.
    public let code: Code
    /// A sentence that describes the error.
    public let reason: String

    init(_ code: Code, _ reason: String) {
        self.code = code
        self.reason = reason
    }

    /// Creates an error with this code, for tests of an app's error handling.
    public init(_ code: Code) { self.init(code, "\(code)") }

    public static var errorDomain: String { UNErrorDomain }
    public var errorCode: Int { code.rawValue }
    public var errorUserInfo: [String: Any] { [NSLocalizedDescriptionKey: reason] }
    public var errorDescription: String? { reason }

    /// The notification cannot be stored, or is not allowed.
    public static var notificationsNotAllowed: Code { .notificationsNotAllowed }
    /// The attachment's file does not exist or cannot be read.
    public static var attachmentInvalidURL: Code { .attachmentInvalidURL }
    /// The type of the attachment's file is not known.
    public static var attachmentUnrecognizedType: Code { .attachmentUnrecognizedType }
    /// The attachment's file is too large for its type.
    public static var attachmentInvalidFileSize: Code { .attachmentInvalidFileSize }
    /// The copy of the attachment's file is missing. This module never throws this error.
    public static var attachmentNotInDataStore: Code { .attachmentNotInDataStore }
    /// The attachment's file cannot be copied, for example because the disk is full.
    public static var attachmentMoveIntoDataStoreFailed: Code { .attachmentMoveIntoDataStoreFailed }
    /// The content of the attachment's file does not match its name.
    public static var attachmentCorrupt: Code { .attachmentCorrupt }
    /// The trigger has no future date.
    public static var notificationInvalidNoDate: Code { .notificationInvalidNoDate }
    /// The notification has no text and no other content to show, or contains a value that cannot be stored.
    public static var notificationInvalidNoContent: Code { .notificationInvalidNoContent }
    /// An error of content providers. This module never throws this error.
    public static var contentProvidingObjectNotAllowed: Code { .contentProvidingObjectNotAllowed }
    /// An error of content providers. This module never throws this error.
    public static var contentProvidingInvalid: Code { .contentProvidingInvalid }
    /// The badge is below 0.
    public static var badgeInputInvalid: Code { .badgeInputInvalid }
}

extension UNError.Code {
    /// Returns whether an error has this code. A code can therefore be used as a pattern: `catch
    /// UNError.Code.notificationsNotAllowed`.
    public static func ~= (code: UNError.Code, error: any Error) -> Bool { (error as? UNError)?.code == code }
}

/// The domain of ``UNError``.
public let UNErrorDomain = "UNErrorDomain"
