import Foundation

/// A request to a store that acts when it has the complete body. The faults that every store supports are played here.
final class CollectedExchange: Exchange {
    let opening: ResponseScript?
    private let request: RecordedRequest
    private let losesAnswer: Bool
    private let act: (RecordedRequest, Data) -> ResponseScript
    private var body = Data()

    /// - Parameter name: The name of the request among the faults; the method if it has only one meaning.
    init(
        _ faults: UploadFaults, _ request: RecordedRequest, as name: String? = nil,
        act: @escaping (RecordedRequest, Data) -> ResponseScript
    ) {
        let fault = faults.consumeFault(for: name ?? request.method)
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
