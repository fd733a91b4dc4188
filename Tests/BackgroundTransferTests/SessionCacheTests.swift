import BackgroundTransfer
import FaultyServer
import Foundation
import Synchronization
import Testing

/// Tests of the cache of ordinary sessions. Each test has a separate cache. `CacheRuleTests` tests the cache rule without a
/// socket.
@Suite(.timeLimit(.minutes(30))) struct SessionCacheTests {
    let server: FaultyServer
    private let configuration = URLSessionConfiguration.ephemeral

    init() async throws { server = try await FaultyServer.start() }

    private func url(_ path: String) throws -> URL { try #require(URL(string: server.url + path)) }

    private func serve(_ path: String, _ headers: HeaderList) {
        let count = Mutex(0)
        server.handle("GET", path) { request in
            if let tag = headers["ETag"], request.headers["If-None-Match"] == tag { return .status(304, headers: headers) }
            let number = count.withLock { count in
                count += 1
                return count
            }
            return .status(200, headers: headers, body: .text("answer \(number)"))
        }
    }

    private static func date(_ date: Date) -> String {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(secondsFromGMT: 0)
        formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return formatter.string(from: date)
    }

    private func get(_ path: String, _ policy: URLRequest.CachePolicy = .useProtocolCachePolicy) async throws -> String {
        var request = try URLRequest(url: url(path))
        request.cachePolicy = policy
        return try await String(decoding: URLSession(configuration: configuration).data(for: request).0, as: UTF8.self)
    }

    @Test func `a fresh response is not requested again`() async throws {
        serve("/f", ["Date": Self.date(Date()), "Cache-Control": "max-age=600"])
        #expect(try await get("/f") == "answer 1")
        #expect(try await get("/f") == "answer 1")
        #expect(server.requests(matching: "/f").count == 1)
        // A request that ignores the cache is sent to the server.
        #expect(try await get("/f", .reloadIgnoringLocalCacheData) == "answer 2")
        #expect(try await get("/f", .reloadIgnoringLocalAndRemoteCacheData) == "answer 3")
        #expect(server.requests(matching: "/f").last?.headers["Cache-Control"] == "no-cache")
        #expect(try await get("/f", .returnCacheDataDontLoad) == "answer 3")
    }

    @Test func `a stale response is validated by the server`() async throws {
        serve("/f", ["Date": Self.date(Date()), "Cache-Control": "no-cache", "ETag": "\"7\""])
        #expect(try await get("/f") == "answer 1")
        #expect(try await get("/f") == "answer 1")
        #expect(server.requests(matching: "/f").map(\.status) == [200, 304])
    }

    @Test(arguments: [["Cache-Control": "no-store"], ["Cache-Control": "max-age=600", "Vary": "Cookie"], [:]] as [HeaderList])
    func `a response that must not be cached is not cached`(_ headers: HeaderList) async throws {
        serve("/f", headers)
        #expect(try await get("/f") == "answer 1")
        #expect(try await get("/f") == "answer 2")
        let error = await #expect(throws: URLError.self) { try await get("/f", .returnCacheDataDontLoad) }
        #expect(error?.code == .resourceUnavailable)
    }

    /// Apps that use Alamofire set Accept-Encoding in each request.
    @Test(arguments: [("br;q=1.0, gzip;q=0.9, deflate;q=0.8", 1), ("x-own", 2)])
    func `a response is cached only if the session can decode it`(_ codings: String, _ count: Int) async throws {
        serve("/f", ["Date": Self.date(Date()), "Cache-Control": "max-age=600", "Vary": "Accept-Encoding"])
        configuration.httpAdditionalHeaders = ["Accept-Encoding": codings]
        #expect(try await get("/f") == "answer 1")
        #expect(try await get("/f") == "answer \(count)")
        #expect(server.requests(matching: "/f").count == count)
    }

    @Test func `a delegate decides whether a response is cached`() async throws {
        final class Choosing: NSObject, URLSessionDataDelegate, Sendable {
            let keeps: Bool
            let (ends, ended) = AsyncStream.makeStream(of: Void.self)
            init(keeps: Bool) { self.keeps = keeps }
            func urlSession(
                _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse
            ) async -> CachedURLResponse? {
                #expect(String(decoding: proposedResponse.data, as: UTF8.self).hasPrefix("answer"))
                return keeps ? proposedResponse : nil
            }
            func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
                ended.finish()
            }
        }
        serve("/f", ["Date": Self.date(Date()), "Cache-Control": "max-age=600"])
        for keeps in [false, true] {
            let choosing = Choosing(keeps: keeps)
            let session = URLSession(configuration: configuration, delegate: choosing, delegateQueue: nil)
            try session.dataTask(with: url("/f")).resume()
            for await _ in choosing.ends {}
            session.finishTasksAndInvalidate()
        }
        // Only the response of the second session is cached.
        while configuration.urlCache?.cachedResponse(for: try URLRequest(url: url("/f"))) == nil { await Task.yield() }
        #expect(try await get("/f") == "answer 2")
    }

    @Test func `a PUT request removes the cached response`() async throws {
        serve("/f", ["Date": Self.date(Date()), "Cache-Control": "max-age=600"])
        server.route("PUT", "/f", .status(204))
        #expect(try await get("/f") == "answer 1")
        var request = try URLRequest(url: url("/f"))
        request.httpMethod = "PUT"
        _ = try await URLSession(configuration: configuration).data(for: request)
        #expect(try await get("/f") == "answer 2")
    }

    @Test func `a session without a cache requests every response again`() async throws {
        configuration.urlCache = nil
        serve("/f", ["Date": Self.date(Date()), "Cache-Control": "max-age=600"])
        #expect(try await get("/f") == "answer 1")
        #expect(try await get("/f") == "answer 2")
        #expect(URLSessionConfiguration.default.urlCache === URLCache.shared)
    }
}
