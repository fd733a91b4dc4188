import Foundation
import FoundationNetworking

// The stores' calls that take a task. Foundation's own take its own tasks.

extension URLCredentialStorage {
    /// The credentials for a space, by their users.
    @preconcurrency public func getCredentials(
        for protectionSpace: URLProtectionSpace, task: URLSessionTask,
        completionHandler: @escaping @Sendable ([String: URLCredential]?) -> Void
    ) { completionHandler(credentials(for: protectionSpace)) }

    /// The credentials for a space, by their users.
    public func credentials(for protectionSpace: URLProtectionSpace, task: URLSessionTask) async -> [String: URLCredential]? {
        credentials(for: protectionSpace)
    }

    /// Keeps a credential for a space.
    public func set(_ credential: URLCredential, for protectionSpace: URLProtectionSpace, task: URLSessionTask) {
        set(credential, for: protectionSpace)
    }

    /// Forgets a credential of a space.
    public func remove(
        _ credential: URLCredential, for protectionSpace: URLProtectionSpace, options: [String: AnyObject]? = nil,
        task: URLSessionTask
    ) { remove(credential, for: protectionSpace, options: options) }

    /// The credential that is proposed for a space.
    @preconcurrency public func getDefaultCredential(
        for space: URLProtectionSpace, task: URLSessionTask, completionHandler: @escaping @Sendable (URLCredential?) -> Void
    ) { completionHandler(defaultCredential(for: space)) }

    /// Keeps a credential, and proposes it from here on.
    public func setDefaultCredential(_ credential: URLCredential, for protectionSpace: URLProtectionSpace, task: URLSessionTask) {
        setDefaultCredential(credential, for: protectionSpace)
    }
}

extension URLCache {
    /// What is kept for the task's current request.
    @preconcurrency public func getCachedResponse(
        for dataTask: URLSessionDataTask, completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) { completionHandler(dataTask.currentRequest.flatMap { cachedResponse(for: $0) }) }

    /// Keeps an answer for the task's current request.
    public func storeCachedResponse(_ cachedResponse: CachedURLResponse, for dataTask: URLSessionDataTask) {
        if let request = dataTask.currentRequest { storeCachedResponse(cachedResponse, for: request) }
    }

    /// Forgets what is kept for the task's current request.
    public func removeCachedResponse(for dataTask: URLSessionDataTask) {
        if let request = dataTask.currentRequest { removeCachedResponse(for: request) }
    }
}

extension HTTPCookieStorage {
    /// Keeps cookies that came with the task's answer.
    public func storeCookies(_ cookies: [HTTPCookie], for task: URLSessionTask) {
        setCookies(cookies, for: task.currentRequest?.url, mainDocumentURL: task.currentRequest?.mainDocumentURL)
    }

    /// The cookies for the task's current request.
    @preconcurrency public func getCookiesFor(
        _ task: URLSessionTask, completionHandler: @escaping @Sendable ([HTTPCookie]?) -> Void
    ) {
        completionHandler(task.currentRequest?.url.flatMap { cookies(for: $0) })
    }
}
