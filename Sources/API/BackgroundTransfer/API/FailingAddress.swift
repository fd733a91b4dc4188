import Foundation
import FoundationNetworking

/// `NSURLErrorFailingURLStringErrorKey`, which Foundation calls deprecated and whose key is still read.
private let failingAddress = "NSErrorFailingURLStringKey"

extension URLError {
    /// The same, saying which address it concerns and what is wrong, where it does not yet.
    func concerning(_ url: URL?) -> URLError {
        var info = userInfo
        if let url {
            if info[NSURLErrorFailingURLErrorKey] == nil { info[NSURLErrorFailingURLErrorKey] = url }
            if info[failingAddress] == nil { info[failingAddress] = url.absoluteString }
        }
        if info[NSLocalizedDescriptionKey] == nil { info[NSLocalizedDescriptionKey] = Self.text(of: code) }
        return URLError(code, userInfo: info)
    }

    private static func text(of code: URLError.Code) -> String {
        switch code {
        case .cancelled: "cancelled"
        case .timedOut: "The request timed out."
        case .badURL: "The address is no address."
        case .unsupportedURL: "The address cannot be asked: nobody here knows its kind."
        case .cannotFindHost: "The server was not found."
        case .cannotConnectToHost: "Nobody could be reached at the server."
        case .networkConnectionLost: "The connection was lost."
        case .notConnectedToInternet: "There is no network."
        case .httpTooManyRedirects: "The server leads from one address to the next without end."
        case .dataLengthExceedsMaximum: "resource exceeds maximum size"
        case .fileDoesNotExist: "The file does not exist."
        case .fileIsDirectory: "The file is a folder."
        case .noPermissionsToReadFile: "The file may not be read."
        case .cannotOpenFile: "The file cannot be opened."
        case .cannotCreateFile: "No file can be made."
        case .cannotWriteToFile: "The file cannot be written."
        case .cannotMoveFile: "The file cannot be moved."
        case .badServerResponse: "The server's answer makes no sense."
        case .resourceUnavailable: "The cache does not have it, and nobody else may be asked."
        case .userAuthenticationRequired: "The server wants to know who asks."
        default: "The request failed (\(code.rawValue))."
        }
    }
}
