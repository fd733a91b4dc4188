import Foundation
import TransferMachines

/// What a server may say: heads, content ranges, dates, digests, tus and structured fields, XML, each to the machine that reads it.
/// A machine may refuse anything; it must not trap, and what it takes must fit what it has.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzWire(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = UnsafeBufferPointer(start: start, count: count)
    guard bytes.count > 4 else { return 0 }
    let now = Date(timeIntervalSince1970: 1_750_000_000)
    let halves = bytes.dropFirst(4).split(separator: 0, maxSplits: 1, omittingEmptySubsequences: false)
    let head = makeHead(status: 100 + Int(bytes[1]) * 2 % 500, String(decoding: halves[0], as: UTF8.self))
    let body = Data(halves.count > 1 ? Array(halves[1]) : [])
    let end = WireEnd(
        head: head, failure: bytes[2] & 1 == 0 ? nil : .connectionLost, bytesSent: Int64(bytes[3]),
        bytesReceived: Int64(body.count))
    switch bytes[0] % 9 {
    case 0: download(head, end, durable: Int64(bytes[3]) * 100, now)
    case let kind: upload(UploadKind.allCases[Int(kind - 1) % UploadKind.allCases.count], head, end, body, now)
    }
    return 0
}

private func makeHead(status: Int, _ text: String) -> ResponseHead {
    let fields = text.split(separator: "\n").prefix(64).map { line -> HeaderField in
        let halves = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        return HeaderField(String(halves[0]), halves.count > 1 ? String(halves[1]) : "")
    }
    return ResponseHead(status: status, headers: fields, url: "http://server.test/file")
}

private func download(_ head: ResponseHead, _ end: WireEnd, durable: Int64, _ now: Date) {
    let request = TransferRequest(method: "GET", url: "http://server.test/file", headers: [], wantsOnlyFile: true)
    let held = PartialFile(
        durableBytes: durable, validator: .entityTag("\"one\""), totalBytes: 100_000, url: "http://server.test/file")
    var machine = DownloadMachine(request: request, partial: durable > 0 ? held : nil)
    _ = machine.begin()
    switch machine.received(head, now: now) {
    case .append(let offset):
        precondition(durable > 0 && offset == durable, "appended where nothing was asked for")
        precondition(head.status == 206, "appended an answer that is no part")
    case .rewrite, .discard: break
    }
    _ = machine.ended(end, durableBytes: durable, now: now, attemptsWithoutProgress: 1, jitter: 0.5)
}

private func upload(_ kind: UploadKind, _ head: ResponseHead, _ end: WireEnd, _ body: Data, _ now: Date) {
    var plan = UploadPlan(
        kind: kind, collectionURL: "http://server.test/photos/", fileName: "storm.jpg", byteCount: 100_000, token: "token",
        headers: [], idleTimeout: 60, rateLimit: nil, contentType: "image/jpeg", field: "file",
        sha256: String(repeating: "0", count: 64))
    plan.sha1 = String(repeating: "0", count: 40)
    var machine = UploadMachine(plan: plan, resuming: nil, policy: .standard)
    var end = end
    end.body = body
    // The same words to every step that it comes to.
    for _ in 0..<6 {
        guard case .send = machine.next() else { return }
        _ = machine.heard(head)
        guard case .continue = machine.ended(end, now: now, attemptsWithoutProgress: 1, jitter: 0.5) else { return }
    }
}
