import Foundation
import FoundationNetworking

// The methods of cookie, cache and credential stores that have a task as a parameter. Foundation's methods accept only
// Foundation's tasks.

extension URLCredentialStorage {
    /// Passes the credentials for a protection space to the handler. The keys of the dictionary are the user names.
    @preconcurrency public func getCredentials(
        for protectionSpace: URLProtectionSpace, task: URLSessionTask,
        completionHandler: @escaping @Sendable ([String: URLCredential]?) -> Void
    ) { completionHandler(credentials(for: protectionSpace)) }

    /// Returns the credentials for a protection space. The keys of the dictionary are the user names.
    public func credentials(for protectionSpace: URLProtectionSpace, task: URLSessionTask) async -> [String: URLCredential]? {
        credentials(for: protectionSpace)
    }

    /// Stores a credential for a protection space.
    public func set(_ credential: URLCredential, for protectionSpace: URLProtectionSpace, task: URLSessionTask) {
        set(credential, for: protectionSpace)
    }

    /// Removes a credential of a protection space.
    public func remove(
        _ credential: URLCredential, for protectionSpace: URLProtectionSpace, options: [String: AnyObject]? = nil,
        task: URLSessionTask
    ) { remove(credential, for: protectionSpace, options: options) }

    /// Passes the proposed credential for a protection space to the handler.
    @preconcurrency public func getDefaultCredential(
        for space: URLProtectionSpace, task: URLSessionTask, completionHandler: @escaping @Sendable (URLCredential?) -> Void
    ) { completionHandler(defaultCredential(for: space)) }

    /// Stores a credential as the default for a protection space. The default credential is proposed for later challenges.
    public func setDefaultCredential(_ credential: URLCredential, for protectionSpace: URLProtectionSpace, task: URLSessionTask) {
        setDefaultCredential(credential, for: protectionSpace)
    }
}

extension URLCache {
    /// Passes the stored response for the task's current request to the handler. Passes `nil` if no response is stored.
    @preconcurrency public func getCachedResponse(
        for dataTask: URLSessionDataTask, completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) { completionHandler(dataTask.currentRequest.flatMap { cachedResponse(for: $0) }) }

    /// Stores a response for the task's current request.
    public func storeCachedResponse(_ cachedResponse: CachedURLResponse, for dataTask: URLSessionDataTask) {
        if let request = dataTask.currentRequest { storeCachedResponse(cachedResponse, for: request) }
    }

    /// Removes the stored response for the task's current request.
    public func removeCachedResponse(for dataTask: URLSessionDataTask) {
        if let request = dataTask.currentRequest { removeCachedResponse(for: request) }
    }
}

extension HTTPCookieStorage {
    /// Stores the cookies of the task's response.
    public func storeCookies(_ cookies: [HTTPCookie], for task: URLSessionTask) {
        setCookies(cookies, for: task.currentRequest?.url, mainDocumentURL: task.currentRequest?.mainDocumentURL)
    }

    /// Passes the cookies for the task's current request to the handler.
    @preconcurrency public func getCookiesFor(
        _ task: URLSessionTask, completionHandler: @escaping @Sendable ([HTTPCookie]?) -> Void
    ) {
        completionHandler(task.currentRequest?.url.flatMap { cookies(for: $0) })
    }
}
