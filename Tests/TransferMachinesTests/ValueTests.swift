import Foundation
import Testing

@testable import TransferMachines

private func head(_ headers: [(String, String)], status: Int = 200) -> ResponseHead {
    ResponseHead(status: status, headers: headers.map { HeaderField($0.0, $0.1) }, url: "https://a/f")
}

@Suite struct HTTPDateTests {
    @Test(arguments: [
        "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
    ])
    func `the three date forms of HTTP are read`(_ text: String) {
        #expect(HTTPDate.parse(text) == Date(timeIntervalSince1970: 784_111_777))
    }

    @Test(arguments: [
        "", "yesterday", "Sun, 31 Feb 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 06 nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49 GMT", "120",
    ])
    func `an invalid date is refused`(_ text: String) {
        #expect(HTTPDate.parse(text) == nil)
    }

    @Test func `dates agree with Foundation`() {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(secondsFromGMT: 0)
        formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        for day in stride(from: -10_000, through: 80_000, by: 37) {
            let date = Date(timeIntervalSince1970: Double(day) * 86_400 + 3723)
            #expect(HTTPDate.parse(formatter.string(from: date)) == date)
        }
    }

    @Test func `Retry-After is read as seconds or a date, up to a maximum`() {
        let now = Date(timeIntervalSince1970: 784_111_777)
        func seconds(_ text: String) -> Double? { RetryAfter.seconds(text, now: now, maximum: 3600) }
        #expect(seconds("120") == 120)
        #expect(seconds("0") == 0)
        #expect(seconds("99999999999999999999999999999") == 3600)
        #expect(seconds("Sun, 06 Nov 1994 08:50:37 GMT") == 60)
        #expect(seconds("Sun, 06 Nov 1994 08:00:00 GMT") == 0)
        #expect(seconds("Sun, 06 Nov 2094 08:00:00 GMT") == 3600)
        #expect(seconds("-5") == nil)
        #expect(seconds("soon") == nil)
        #expect(seconds("1 2") == nil)
    }
}

@Suite struct ValidatorTests {
    @Test func `a strong entity tag is a validator, and a weak or repeated tag is not`() {
        #expect(Validator.from(head([("ETag", " \"a\" ")])) == .entityTag("\"a\""))
        #expect(Validator.from(head([("etag", "W/\"a\""), ("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT")])) == nil)
        #expect(Validator.from(head([("ETag", "a")])) == nil)
        #expect(Validator.from(head([("ETag", "\"a\""), ("ETag", "\"b\"")])) == nil)
        #expect(Validator.from(head([])) == nil)
    }

    @Test func `a modification date is a validator only if it is older than the response`() {
        let modified = ("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT")
        let strong = Validator.lastModified(modified.1)
        #expect(Validator.from(head([modified, ("Date", "Sun, 06 Nov 1994 08:49:38 GMT")])) == strong)
        #expect(Validator.from(head([modified, ("Date", "Sun, 06 Nov 1994 08:49:37 GMT")])) == nil)
        #expect(Validator.from(head([modified])) == nil)
        let time = Date(timeIntervalSince1970: 784_111_777)
        #expect(Validator.from(head([modified]), receivedAt: time.addingTimeInterval(60)) == strong)
        #expect(Validator.from(head([modified]), receivedAt: time.addingTimeInterval(59)) == nil)
    }

    @Test func `a validator for a conditional request may be weak and is never invalid`() {
        let (modified, served) = (("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT"), ("Date", "Sun, 06 Nov 1994 08:50:37 GMT"))
        let time = Date(timeIntervalSince1970: 784_111_777)
        func validator(_ headers: [(String, String)], after seconds: Double = 60) -> Validator? {
            Validator.toRevalidate(head(headers), receivedAt: time + seconds)
        }
        for tag in ["\"a\"", "W/\"a\""] { #expect(validator([("ETag", tag), modified, served]) == .entityTag(tag)) }
        for tag in ["a", "\"a", "W/a", "w/\"a\"", "\"a\", \"b\"", ""] {
            #expect(validator([("ETag", tag)]) == nil, "\(tag)")
            #expect(validator([("ETag", tag), modified, served]) == .lastModified(modified.1), "\(tag)")
        }
        #expect(validator([modified, served], after: -1) == nil, "the server's clock is ahead")
        #expect(validator([modified, ("Date", modified.1)]) == nil && validator([modified], after: 59) == nil)
        #expect(Validator.entityTag("\"a\"").condition == HeaderField("If-None-Match", "\"a\""))
        #expect(Validator.lastModified(modified.1).condition == HeaderField("If-Modified-Since", modified.1))
    }

    @Test func `Content-Range is parsed`() {
        #expect(ContentRange("bytes 5-9/10") == .part(first: 5, last: 9, total: 10))
        #expect(ContentRange("bytes 5-9/*") == .part(first: 5, last: 9, total: nil))
        #expect(ContentRange("bytes */10") == .unsatisfied(total: 10))
        for bad in ["bytes */*", "bytes 9-5/10", "bytes 5-10/10", "items 5-9/10", "bytes 5-/10", "bytes=5-9/10", ""] {
            #expect(ContentRange(bad) == nil, "\(bad)")
        }
    }

    @Test func `addresses that differ only in their signature are the same`() {
        let file = PartialFile(
            durableBytes: 1, validator: .entityTag("\"a\""), totalBytes: 9, url: "https://s/f?id=1&X-Amz-Signature=1")
        #expect(file.belongs(to: "https://s/f?id=1&X-Amz-Signature=2"))
        #expect(!file.belongs(to: "https://s/f?id=2&X-Amz-Signature=1"))
        #expect(!file.belongs(to: "https://t/f?id=1&X-Amz-Signature=1"))
        #expect(!file.belongs(to: "https://s/f"))
    }

    @Test func `the delay grows, has a maximum and respects Retry-After`() {
        let policy = RetryPolicy()
        #expect(policy.backoff(attemptsWithoutProgress: 0, jitter: 0.5) == 0.5)
        #expect(policy.backoff(attemptsWithoutProgress: 3, jitter: 0.5) == 4)
        #expect(policy.backoff(attemptsWithoutProgress: 100_000, jitter: 1) == 900)
        #expect(policy.delay(retryAfter: 120, attemptsWithoutProgress: 0, jitter: 0) == 120)
        // The delay is longer than the server requires. With equal delays, all refused clients would retry at the same time.
        #expect(policy.delay(retryAfter: 120, attemptsWithoutProgress: 0, jitter: 0.5) == 180)
        #expect(policy.delay(retryAfter: 20_000, attemptsWithoutProgress: 0, jitter: 0.5) == 20_450)
        #expect(policy.delay(retryAfter: 21_000, attemptsWithoutProgress: 0, jitter: 0.9) == 21_600)
        // If a server refuses repeatedly with a delay of 0, this delay is not used.
        #expect(policy.delay(retryAfter: 0, attemptsWithoutProgress: 3, jitter: 0.5) == 4)
        #expect(policy.delay(retryAfter: 0, attemptsWithoutProgress: 100_000, jitter: 0.5) == 450)
        let start = Date(timeIntervalSince1970: 1000)
        #expect(RetryPolicy.shouldGiveUp(lastProgressAt: start, now: start.addingTimeInterval(60), resourceTimeout: 60))
        #expect(!RetryPolicy.shouldGiveUp(lastProgressAt: start, now: start.addingTimeInterval(59), resourceTimeout: 60))
        #expect(!RetryPolicy.shouldGiveUp(lastProgressAt: start, now: start.addingTimeInterval(-9e9), resourceTimeout: 60))
    }
}

@Suite struct RemoteNameTests {
    @Test(arguments: [
        ("noon 12:00.jpg", "noon%2012%3A00.jpg"), ("Größe.jpg", "Gr%C3%B6%C3%9Fe.jpg"),
        ("../../etc/passwd", ".._.._etc_passwd"), ("..", "__"), (".", "_"), ("", "file"), ("a\\b\u{0}c", "a_b_c"),
        ("100%.jpg", "100%25.jpg"), ("a?b#c", "a%3Fb%23c"),
    ])
    func `a remote name stays in its folder`(_ name: String, _ expected: String) {
        let address = CollectionAddress("https://me:secret@host:8443/dav/my photos/")
        #expect(address?.publicFile(RemoteName.safe(name)) == "https://host:8443/dav/my%20photos/" + expected)
        #expect(address?.file("x") == "https://me:secret@host:8443/dav/my%20photos/x")
    }

    @Test func `numbers are inserted before the file extension`() {
        #expect(RemoteName.numbered("photo.jpg", 0) == "photo.jpg")
        #expect(RemoteName.numbered("photo.jpg", 12) == "photo-12.jpg")
        #expect(RemoteName.numbered(".hidden", 1) == ".hidden-1")
        #expect(RemoteName.numbered("photo", 1) == "photo-1")
        let long = RemoteName.numbered(String(repeating: "ö", count: 300) + ".jpg", 7)
        #expect(long.utf8.count <= 255 && long.hasSuffix("-7.jpg"))
        #expect(RemoteName.temporary(token: "../a-1/ö") == ".a1.part")
    }

    @Test func `collection addresses are validated and normalized`() {
        #expect(CollectionAddress("file:///etc") == nil)
        #expect(CollectionAddress("https:///x") == nil)
        #expect(CollectionAddress("photos") == nil)
        #expect(CollectionAddress("http://h")?.file("a") == "http://h/a")
        #expect(CollectionAddress("http://h/a/../../b?q#f")?.file("a") == "http://h/b/a")
        #expect(CollectionAddress("http://h/a%20b/")?.folder(levels: 1) == "http://h/a%20b/")
    }

    @Test func `the server may have a file while the request for its name is under way`() {
        for kind in UploadKind.protocols {
            let steps: Set<UploadMemory.Step> = Set(
                [.chooseName, .create, .put, .append, .move, .check].filter(kind.mayBeOnServer))
            switch kind {
            case .webdav, .nextcloud: #expect(steps == [.move])
            case .put, .multipart, .s3, .immich: #expect(steps == [.put, .check, .move])
            case .tus, .resumable, .plain: #expect(steps.isEmpty)
            }
        }
    }
}
