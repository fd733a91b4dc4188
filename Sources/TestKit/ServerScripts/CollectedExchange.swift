import Foundation

/// A request to a store that acts once it has the whole body. The faults that every store can have are played here.
final class CollectedExchange: Exchange {
    let opening: ResponseScript?
    private let request: RecordedRequest
    private let losesAnswer: Bool
    private let act: (RecordedRequest, Data) -> ResponseScript
    private var body = Data()

    /// - Parameter name: what the request is called among the faults: its method, where no two mean different things.
    init(
        _ faults: UploadFaults, _ request: RecordedRequest, as name: String? = nil,
        act: @escaping (RecordedRequest, Data) -> ResponseScript
    ) {
        let fault = faults.take(for: name ?? request.method)
        opening = fault?.opening()
        losesAnswer = fault?.losesAnswer == true
        self.request = request
        self.act = act
    }

    func receive(_ bytes: Data) { if opening == nil { body += bytes } }

    func finish() -> ResponseScript {
        if let opening { return opening }
        let answer = act(request, body)
        return losesAnswer ? .hangUp : answer
    }

    func abandon() {}
}
