import Foundation

/// A request to a store that acts when the request's body is complete. `CollectedExchange` also plays the faults that every store
/// supports.
final class CollectedExchange: Exchange {
    let opening: ResponseScript?
    private let request: RecordedRequest
    private let losesAnswer: Bool
    private let act: (RecordedRequest, Data) -> ResponseScript
    private var body = Data()

    /// - Parameter name: The name of the request in `UploadFaults`; the method, if this method has only one meaning for the
    ///   store.
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
