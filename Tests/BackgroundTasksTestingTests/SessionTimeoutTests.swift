import BackgroundTasksTesting
import Foundation
import ServerScripts
import Testing

@testable import BackgroundTransfer

/// Tests of unusual timeouts, for example infinity, zero or a negative number. Such timeouts have the documented effect.
@Suite(.timeLimit(.minutes(30))) struct SessionTimeoutTests {
    private static let origin = "https://api.test"
    private static let week = 7 * 86_400.0

    @Test(arguments: [Double.nan, .infinity, -Double.infinity, 0, -1, .greatestFiniteMagnitude])
    func `a background session with an unusual timeout completes its downloads`(_ seconds: Double) async throws {
        try await TestDriver.run(permitting: []) { driver in
            driver.network.server(Self.origin).route(nil, "/file", .status(200, body: "one"))
            let configuration = URLSessionConfiguration.background(withIdentifier: "unusual")
            (configuration.timeoutIntervalForRequest, configuration.timeoutIntervalForResource) = (seconds, seconds)
            let session = URLSession(configuration: configuration)
            var request = URLRequest(url: try #require(URL(string: Self.origin + "/file")))
            let first = session.downloadTask(with: request)
            request.timeoutInterval = seconds
            let second = session.downloadTask(with: request)
            for task in [first, second] {
                task.resume()
                #expect(task.error == nil)
            }
            try await driver.advance(by: .seconds(60))
            #expect(driver.ledger.transfers.map(\.state) == [.completed, .completed])
        }
    }

    @Test(
        arguments: [
            (60, 60), (20, 20), (0.5, 0.5), (.nan, 60), (0, 60), (-1, 60), (-Double.infinity, 60), (.infinity, week),
            (1e300, week),
        ] as [(Double, Double)])
    func `a request has the timeout of its configuration`(_ value: Double, _ expected: Double) throws {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForRequest = value
        var request = URLRequest(url: try #require(URL(string: Self.origin)))
        #expect(WireOrder.idleTimeout(request, configuration) == expected)
        request.timeoutInterval = .nan
        #expect(WireOrder.idleTimeout(request, configuration) == expected)
        request.timeoutInterval = 5
        #expect(WireOrder.idleTimeout(request, configuration) == 5)
    }

    @Test(
        arguments: [
            (60, 60), (.nan, week), (0, week), (-1, week), (-Double.infinity, week), (.infinity, 100 * 365.25 * 86_400),
        ] as [(Double, Double)])
    func `a resource timeout is a positive number of seconds`(_ value: Double, _ expected: Double) {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForResource = value
        #expect(configuration.resourcePatience == expected)
    }
}
