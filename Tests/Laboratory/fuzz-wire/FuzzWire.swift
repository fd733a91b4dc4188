import Foundation
import TransferMachines

/// Passes responses of a server to the state machines: headers, content ranges, dates, digests, fields of tus, structured fields
/// and XML. A machine may refuse any response, but must not crash. An accepted response must continue the bytes that are already
/// stored.
///
/// The first byte chooses the machine. The responses follow, separated by 0x1E. Each step of the machine uses the next response.
/// The last response is used for all further steps. A response has two bytes for the status, one byte for the end of the
/// connection, and one byte for the stored length. After these bytes come the headers, a zero and the body.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzWire(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = UnsafeBufferPointer(start: start, count: count)
    guard let listener = bytes.first else { return 0 }
    let answers = bytes.dropFirst().split(separator: 0x1E, maxSplits: 15, omittingEmptySubsequences: true).compactMap(
        ScriptedResponse.init)
    guard let first = answers.first else { return 0 }
    let now = Date(timeIntervalSince1970: 1_750_000_000)
    switch listener % 9 {
    case 0: download(first.head, first.end, durable: first.count * 100, now)
    case let kind: upload(UploadKind.allCases[Int(kind - 1) % UploadKind.allCases.count], answers, now)
    }
    return 0
}

private struct ScriptedResponse {
    let head: ResponseHead
    let end: WireEnd
    let count: Int64

    init?(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) {
        guard bytes.count > 4 else { return nil }
        let numbers = Array(bytes.prefix(4))
        let halves = bytes.dropFirst(4).split(separator: 0, maxSplits: 1, omittingEmptySubsequences: false)
        let body = Data(halves.count > 1 ? Array(halves[1]) : [])
        head = makeHead(
            status: 100 + (Int(numbers[0]) << 8 | Int(numbers[1])) % 500, String(decoding: halves[0], as: UTF8.self))
        count = Int64(numbers[3])
        var end = WireEnd(
            head: head, failure: numbers[2] & 1 == 0 ? nil : .connectionLost, bytesSent: count, bytesReceived: Int64(body.count))
        end.body = body
        self.end = end
    }
}

private func makeHead(status: Int, _ text: String) -> ResponseHead {
    let fields = text.split(separator: "\n").prefix(64).map { line -> HeaderField in
        let halves = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        return HeaderField(String(halves[0]), halves.count > 1 ? String(halves[1]) : "")
    }
    return ResponseHead(status: status, headers: fields, url: "http://server.test/file")
}

private func download(_ head: ResponseHead, _ end: WireEnd, durable: Int64, _ now: Date) {
    let request = TransferRequest(method: "GET", url: "http://server.test/file", headers: [], fileName: "file")
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

private func upload(_ kind: UploadKind, _ answers: [ScriptedResponse], _ now: Date) {
    var order = UploadOrder(method: kind, fileName: "storm.jpg", byteCount: 100_000, token: "token")
    (order.contentType, order.sha1) = ("image/jpeg", String(repeating: "0", count: 40))
    let plan = UploadPlan(
        order: order, collectionURL: "http://server.test/photos/", sha256: String(repeating: "0", count: 64))
    var machine = UploadMachine(plan: plan, resuming: nil, policy: .standard)
    for step in 0..<24 {
        guard case .send = machine.next() else { return }
        let answer = answers[min(step, answers.count - 1)]
        _ = machine.received(answer.head)
        switch machine.ended(answer.end, now: now, attemptsWithoutProgress: 1, jitter: 0.5) {
        case .continue, .retry: break
        default: return
        }
    }
}
