import Foundation

/// Why a notification was not accepted.
public struct UNError: Error, Sendable, Equatable, CustomNSError, LocalizedError {
    /// What is wrong, by Apple's numbers.
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

    /// What is wrong.
    public let code: Code
    /// A sentence that says what is wrong.
    public let reason: String

    init(_ code: Code, _ reason: String) {
        self.code = code
        self.reason = reason
    }

    /// An error of this code, for tests of what an app makes of it.
    public init(_ code: Code) { self.init(code, "\(code)") }

    public static var errorDomain: String { UNErrorDomain }
    public var errorCode: Int { code.rawValue }
    public var errorUserInfo: [String: Any] { [NSLocalizedDescriptionKey: reason] }
    public var errorDescription: String? { reason }

    /// It cannot be written down, or is not allowed.
    public static var notificationsNotAllowed: Code { .notificationsNotAllowed }
    /// There is no file there that can be read.
    public static var attachmentInvalidURL: Code { .attachmentInvalidURL }
    /// It is no kind of file that is known.
    public static var attachmentUnrecognizedType: Code { .attachmentUnrecognizedType }
    /// It is too large for its kind.
    public static var attachmentInvalidFileSize: Code { .attachmentInvalidFileSize }
    /// Its copy is gone. Not used here.
    public static var attachmentNotInDataStore: Code { .attachmentNotInDataStore }
    /// It cannot be copied: the disk is full, say.
    public static var attachmentMoveIntoDataStoreFailed: Code { .attachmentMoveIntoDataStoreFailed }
    /// Its content is not what its name promises.
    public static var attachmentCorrupt: Code { .attachmentCorrupt }
    /// Its trigger has no date that comes.
    public static var notificationInvalidNoDate: Code { .notificationInvalidNoDate }
    /// It has nothing to show, or something that cannot be kept.
    public static var notificationInvalidNoContent: Code { .notificationInvalidNoContent }
    /// Of content providers. Not used here.
    public static var contentProvidingObjectNotAllowed: Code { .contentProvidingObjectNotAllowed }
    /// Of content providers. Not used here.
    public static var contentProvidingInvalid: Code { .contentProvidingInvalid }
    /// A badge below 0.
    public static var badgeInputInvalid: Code { .badgeInputInvalid }
}

extension UNError.Code {
    /// `catch UNError.Code.notificationsNotAllowed`.
    public static func ~= (code: UNError.Code, error: any Error) -> Bool { (error as? UNError)?.code == code }
}

/// The domain of ``UNError``.
public let UNErrorDomain = "UNErrorDomain"
