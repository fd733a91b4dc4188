import Synchronization

/// A store on the server that accepts uploads, with faults on demand.
public protocol UploadStore: AnyObject, Sendable {
    /// The path prefix of the store on the server, such as `/dav`.
    var prefix: String { get }
    var faults: UploadFaults { get }
}

/// The interface that a server uses to access a store.
package protocol MountedStore: UploadStore {
    func exchange(for request: RecordedRequest) -> any Exchange
}

/// Faults for the next requests. The faults are used in the order in which they were added.
public final class UploadFaults: Sendable {
    struct Fault {
        enum Kind {
            case refuse(Int, HeaderList, body: String)
            case cut(afterBytes: Int)
            case stall(afterBytes: Int)
            case loseAnswer
            case keepNothing

            /// Returns the response that the store sends instead of performing the requested action. Returns `nil` if the store
            /// performs the action and only the response is lost.
            /// - Parameter refusesAt: The part of the request after which a refusal is sent.
            func opening(refusesAt: ResponseScript.Beginning = .afterBody) -> ResponseScript? {
                switch self {
                case .refuse(let status, let headers, let body):
                    .status(status, headers: headers, body: .text(body)).begins(refusesAt)
                case .cut(let bytes): ResponseScript([.cut], beginning: .afterBodyBytes(bytes))
                case .stall(let bytes): ResponseScript([.stopReading, .stall], beginning: .afterBodyBytes(bytes))
                case .loseAnswer, .keepNothing: nil
                }
            }

            var losesAnswer: Bool {
                if case .loseAnswer = self { true } else { false }
            }

            var keepsNothing: Bool {
                if case .keepNothing = self { true } else { false }
            }

            var refuses: Bool {
                if case .refuse = self { true } else { false }
            }
        }

        let kind: Kind
        let method: String?
        var remaining: Int
    }

    private let waiting = Mutex<[Fault]>([])

    /// Removes all faults that were not used.
    public func clear() { waiting.withLock { $0 = [] } }

    func add(_ kind: Fault.Kind, _ method: String?, _ count: Int) {
        waiting.withLock { $0.append(Fault(kind: kind, method: method, remaining: count)) }
    }

    /// Returns the fault for a request and consumes it.
    func consumeFault(for method: String) -> Fault.Kind? {
        waiting.withLock { faults in
            faults.removeAll { $0.remaining <= 0 }
            guard let index = faults.firstIndex(where: { $0.method == nil || $0.method == method }) else { return nil }
            faults[index].remaining -= 1
            return faults[index].kind
        }
    }
}

extension UploadStore {
    /// Refuses the next requests. If the request contains `Expect: 100-continue`, the response is sent before the body. Without
    /// this header, the response is sent after the body.
    ///
    /// - Parameters:
    ///   - status: The status, for example 507, 423, 403 or 500.
    ///   - method: The method of the requests; `nil` for every method.
    ///   - count: The number of requests.
    ///   - headers: The headers of the response.
    ///   - body: The body of the response, for example the reason in XML.
    public func refuse(
        status: Int, method: String? = nil, next count: Int = 1, headers: HeaderList = [:], body: String = ""
    ) {
        faults.add(.refuse(status, headers, body: body), method, count)
    }

    /// Closes the connection of the next requests with a body, when this number of bytes of the body has arrived. The requests are
    /// PUTs unless another method is given.
    public func cutUploads(afterBytes bytes: Int, method: String = "PUT", next count: Int = 1) {
        faults.add(.cut(afterBytes: bytes), method, count)
    }

    /// Reads only about this many body bytes of the next PUTs, and never responds. `ResponseScript.Step.stopReading` describes
    /// what the log can record in this case.
    public func stallUploads(afterBytes bytes: Int, next count: Int = 1) {
        faults.add(.stall(afterBytes: bytes), "PUT", count)
    }

    /// Performs the next requests of a method, and then closes the connection without a response.
    public func loseAnswers(to method: String, next count: Int = 1) {
        faults.add(.loseAnswer, method, count)
    }

    /// Removes all faults that were not used.
    public func clearFaults() { faults.clear() }
}
