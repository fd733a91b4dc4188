import Foundation
import FoundationNetworking

/// The value of `NSURLErrorFailingURLStringErrorKey`. Foundation marks this constant as deprecated, but apps still read the key.
private let failingAddress = "NSErrorFailingURLStringKey"

extension URLError {
    /// Returns the error with the address of the failed request and a description. An address or a description that the error
    /// already contains is not changed.
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
        case .badURL: "The URL is not valid."
        case .unsupportedURL: "The URL scheme is not supported."
        case .cannotFindHost: "The server was not found."
        case .cannotConnectToHost: "The connection to the server failed."
        case .networkConnectionLost: "The connection was lost."
        case .notConnectedToInternet: "The network connection appears to be offline."
        case .httpTooManyRedirects: "The server sent too many redirects."
        case .dataLengthExceedsMaximum: "The response exceeds the maximum size."
        case .fileDoesNotExist: "The file does not exist."
        case .fileIsDirectory: "The file is a folder."
        case .noPermissionsToReadFile: "No permission to read the file."
        case .cannotOpenFile: "The file cannot be opened."
        case .cannotCreateFile: "The file cannot be created."
        case .cannotWriteToFile: "The file cannot be written."
        case .cannotMoveFile: "The file cannot be moved."
        case .badServerResponse: "The server's response is not valid."
        case .resourceUnavailable: "The response is not in the cache, and the request does not allow a connection."
        case .userAuthenticationRequired: "The server requires a user name and password."
        default: "The request failed (\(code.rawValue))."
        }
    }
}
