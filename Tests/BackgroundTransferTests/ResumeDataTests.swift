@testable import BackgroundLedger
import Foundation
import Testing
import TransferMachines

@testable import BackgroundTransfer

/// Tests that resume data has a version, contains no path, and detects changes.
@Suite struct ResumeDataTests {
    private func resume(_ change: (inout TransferRecord) -> Void = { _ in }) -> ResumeData? {
        var record = TransferRecord(
            session: "s", key: "k", kind: .download, method: "GET", url: "https://example.org/file?a=b",
            headers: [HeaderField("Accept", "image/*")], now: Date(timeIntervalSince1970: 0))
        record.partial = PartialFile(
            durableBytes: 1_000, validator: .entityTag("\"v1\""), totalBytes: 5_000, url: "https://example.org/file?a=b")
        record.file = "transfer-7"
        record.destination = "/home/someone/secret place/file"
        record.resumeToken = "token"
        record.taskDescription = "label"
        change(&record)
        return ResumeData(record)
    }

    @Test func `resume data is read as it was written and contains no path`() throws {
        let made = try #require(resume())
        #expect(ResumeData(made.data) == made)
        #expect(made.byteCount == 1_000 && made.totalBytes == 5_000)
        #expect(made.request?.url?.absoluteString == "https://example.org/file?a=b")
        #expect(made.request?.value(forHTTPHeaderField: "Accept") == "image/*")
        let text = String(decoding: made.data, as: UTF8.self)
        #expect(!text.contains("secret place") && !text.contains("transfer-7"))
    }

    /// The indices of a slice do not begin at 0.
    @Test func `a slice of other data is valid resume data`() throws {
        let made = try #require(resume())
        let slice = (Data([1, 2, 3]) + made.data)[3...]
        #expect(ResumeData(slice) == made)
    }

    @Test func `a transfer that cannot be continued has no resume data`() {
        #expect(resume { $0.partial = nil } == nil)
        #expect(resume { $0.partial?.durableBytes = 0 } == nil)
        #expect(resume { $0.partial?.validator = nil } == nil)
        #expect(resume { $0.resumeToken = nil } == nil)
        #expect(resume { $0.kind = .upload } == nil)
    }

    @Test func `every changed bit is detected`() throws {
        let data = try #require(resume()).data
        for index in data.indices {
            for bit in 0..<8 {
                var changed = data
                changed[index] ^= 1 << bit
                #expect(ResumeData(changed) == nil, "byte \(index), bit \(bit)")
            }
        }
    }

    @Test func `resume data of another length is refused`() throws {
        let data = try #require(resume()).data
        for count in 0..<data.count { #expect(ResumeData(data.prefix(count)) == nil, "\(count) bytes") }
        #expect(ResumeData(data + [0]) == nil)
        #expect(ResumeData(Data(repeating: 0x42, count: 2_000_000)) == nil)
    }
}

/// Tests that equal requests have equal keys, and that different requests have different keys.
@Suite struct OrderTests {
    private func key(_ change: (inout URLRequest) -> Void = { _ in }, session: String = "s") throws -> String {
        var request = URLRequest(url: URL(string: "https://example.org/file")!)
        change(&request)
        return try WireOrder(request, .background(withIdentifier: session)).key(session: session)
    }

    @Test func `equal requests have equal keys`() throws {
        #expect(try key() == key())
        #expect(
            try key {
                $0.setValue("1", forHTTPHeaderField: "A")
                $0.setValue("2", forHTTPHeaderField: "B")
            }
                == key {
                    $0.setValue("2", forHTTPHeaderField: "B")
                    $0.setValue("1", forHTTPHeaderField: "A")
                })
    }

    @Test func `different requests have different keys`() throws {
        let plain = try key()
        #expect(try key { $0.httpMethod = "HEAD" } != plain)
        #expect(try key { $0.url = URL(string: "https://example.org/file?") } != plain)
        #expect(try key { $0.setValue("x", forHTTPHeaderField: "Authorization") } != plain)
        let post = try key { $0.httpMethod = "POST" }
        #expect(
            try key {
                $0.httpMethod = "POST"
                $0.httpBody = Data("x".utf8)
            } != post)
        #expect(try key({ _ in }, session: "t") != plain)
    }

    @Test(arguments: ["file:///etc/passwd", "ftp://example.org/", "http:///nohost", "data:,x"])
    func `a URL with another scheme or without a host is refused`(_ text: String) throws {
        let url = try #require(URL(string: text))
        #expect(throws: URLError.self) { try WireOrder(URLRequest(url: url), .background(withIdentifier: "s")) }
    }

    @Test(arguments: ["", "a b", "a:b", "ä", "a\u{7}"]) func `a header that cannot be sent is refused`(_ name: String) throws {
        var request = URLRequest(url: try #require(URL(string: "https://h/a")))
        request.httpMethod = ""
        #expect(try WireOrder(request, .background(withIdentifier: "s")).method == "GET")
        request.setValue("1", forHTTPHeaderField: name)
        #expect(throws: URLError.self) { try WireOrder(request, .background(withIdentifier: "s")) }
        let configuration = URLSessionConfiguration.background(withIdentifier: "s")
        configuration.httpAdditionalHeaders = [name: "1"]
        request.setValue(nil, forHTTPHeaderField: name)
        #expect(throws: URLError.self) { try WireOrder(request, configuration) }
    }

    @Test(arguments: ["GET\r\nX: 1", "A B", "ÄNDERN"]) func `a method that cannot be sent is refused`(_ method: String) throws {
        var request = URLRequest(url: try #require(URL(string: "https://h/a")))
        request.httpMethod = method
        #expect(throws: URLError.self) { try WireOrder(request, .background(withIdentifier: "s")) }
    }

    @Test func `a header of the configuration is used if the request does not set the header`() throws {
        let configuration = URLSessionConfiguration.background(withIdentifier: "s")
        configuration.httpAdditionalHeaders = ["accept": "b", "X-App": "1"]
        var request = URLRequest(url: URL(string: "https://example.org/")!)
        request.setValue("a", forHTTPHeaderField: "Accept")
        let order = try WireOrder(request, configuration)
        #expect(order.headers.contains(HeaderField("Accept", "a")) && order.headers.contains(HeaderField("X-App", "1")))
        #expect(order.headers.count == 2)
    }

    @Test func `the needs of a transfer follow from the configuration of its session`() throws {
        let configuration = URLSessionConfiguration.background(withIdentifier: "s")
        let request = URLRequest(url: URL(string: "https://example.org:8443/x")!)
        func record() throws -> TransferRecord {
            try WireOrder(request, configuration).record(configuration, session: "s", key: "k", kind: .download, now: Date())
        }
        #expect(try record().needs == [])
        #expect(try record().host == "https://example.org:8443")
        configuration.allowsExpensiveNetworkAccess = false
        configuration.allowsCellularAccess = false
        #expect(try record().needs == [.unmetered, .notCellular])
        configuration.isDiscretionary = true
        configuration.allowsConstrainedNetworkAccess = false
        #expect(try record().needs == [.unmetered, .notCellular, .externalPower, .unconstrained])
    }
}
