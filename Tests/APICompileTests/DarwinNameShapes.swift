// Small APIs that iOS code uses in addition to the large APIs. The code must compile, and each property must return the value
// that was set.
import BackgroundTasks
import BackgroundTransfer
import Foundation
import Testing

@Suite struct DarwinNameShapes {
    @Test func `a configuration keeps properties that have no effect`() {
        let configuration = URLSessionConfiguration.default
        configuration.tlsMinimumSupportedProtocolVersion = .TLSv12
        configuration.tlsMaximumSupportedProtocolVersion = .TLSv12
        configuration.enablesEarlyData = true
        configuration.allowsUltraConstrainedNetworkAccess = true
        configuration.networkServiceType = .responsiveData
        let kept = URLSession(configuration: configuration).configuration
        #expect(kept.tlsMaximumSupportedProtocolVersion == .TLSv12)
        #expect(kept.enablesEarlyData && kept.allowsUltraConstrainedNetworkAccess)
    }

    @Test func `a request keeps its attribution and other properties that have no effect`() throws {
        var request = URLRequest(url: try #require(URL(string: "https://example.org/")))
        #expect(request.attribution == .developer && !request.requiresDNSSECValidation)
        request.attribution = .user
        request.requiresDNSSECValidation = true
        request.allowsUltraConstrainedNetworkAccess = true
        request.networkServiceType = .responsiveData
        #expect(request.attribution == .user && request.requiresDNSSECValidation && request.allowsUltraConstrainedNetworkAccess)
        request.attribution = .developer
        #expect(request.attribution == .developer && request.requiresDNSSECValidation)
    }

    /// Code that is typical of libraries that log network traffic.
    private func describe(_ metrics: URLSessionTaskMetrics) -> [String] {
        metrics.transactionMetrics.map { transaction in
            let version = transaction.negotiatedTLSProtocolVersion.map { "\($0.rawValue)" } ?? "unknown"
            let suite = transaction.negotiatedTLSCipherSuite.map { "\($0.rawValue)" } ?? "unknown"
            return version + " " + suite
        }
    }

    @Test func `the user info keys of URL errors exist`() {
        let error = NSError(domain: NSURLErrorDomain, code: NSURLErrorNetworkConnectionLost)
        #expect(error.userInfo[NSURLSessionUploadTaskResumeData] == nil)
        #expect(error.userInfo[NSURLErrorNetworkUnavailableReasonKey] == nil)
    }

    @Test func `a file is read by lines and by bytes`() async throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: file) }
        try Data("one\r\ntwo\n\nthree".utf8).write(to: file)
        var lines: [String] = []
        for try await line in file.lines { lines.append(line) }
        #expect(lines == ["one", "two", "", "three"])
        var count = 0
        for try await _ in file.resourceBytes { count += 1 }
        #expect(count == 15)
    }

    @Test func `an autorelease pool runs its body`() throws {
        #expect(autoreleasepool { 7 } == 7)
        #expect(throws: CancellationError.self) { try autoreleasepool { throw CancellationError() } }
    }

    @Test func `an expiring activity is run`() async {
        await withCheckedContinuation { continuation in
            ProcessInfo.processInfo.performExpiringActivity(withReason: "saves a draft") { isExpired in
                if !isExpired { continuation.resume() }
            }
        }
    }
}
