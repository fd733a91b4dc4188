import Synchronization

/// A place on the server that takes uploads, with faults on demand.
public protocol UploadStore: AnyObject, Sendable {
    /// Where it hangs on the server, such as `/dav`.
    var prefix: String { get }
    var faults: UploadFaults { get }
}

/// What the server asks of a store.
package protocol MountedStore: UploadStore {
    func exchange(for request: RecordedRequest) -> any Exchange
}

/// Faults that wait for their requests, taken in the order they were asked for.
public final class UploadFaults: Sendable {
    struct Fault {
        enum Kind {
            case refuse(Int, HeaderList, body: String)
            case cut(afterBytes: Int)
            case stall(afterBytes: Int)
            case loseAnswer
            case keepNothing

            /// What the server does in place of what was asked; `nil`: the store acts, and only its answer is lost.
            /// - Parameter refusesAt: when a refusal goes out.
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

    /// Takes back all that were not used.
    public func clear() { waiting.withLock { $0 = [] } }

    func add(_ kind: Fault.Kind, _ method: String?, _ count: Int) {
        waiting.withLock { $0.append(Fault(kind: kind, method: method, remaining: count)) }
    }

    /// The fault for a request, consumed.
    func take(for method: String) -> Fault.Kind? {
        waiting.withLock { faults in
            faults.removeAll { $0.remaining <= 0 }
            guard let index = faults.firstIndex(where: { $0.method == nil || $0.method == method }) else { return nil }
            faults[index].remaining -= 1
            return faults[index].kind
        }
    }
}

extension UploadStore {
    /// Refuses the next requests. With `Expect: 100-continue` the response comes before the body, else after it.
    ///
    /// - Parameters:
    ///   - status: The status, for example 507, 423, 403 or 500.
    ///   - method: The method of the requests; `nil` means each method.
    ///   - count: The number of requests.
    ///   - headers: The headers of the response.
    ///   - body: The body of the response, for example the reason in XML.
    public func refuse(
        status: Int, method: String? = nil, next count: Int = 1, headers: HeaderList = [:], body: String = ""
    ) {
        faults.add(.refuse(status, headers, body: body), method, count)
    }

    /// Closes the connection of the next requests with a body (PUTs, unless another method is named) once this many of its
    /// bytes arrived.
    public func cutUploads(afterBytes bytes: Int, method: String = "PUT", next count: Int = 1) {
        faults.add(.cut(afterBytes: bytes), method, count)
    }

    /// Reads no further than about this many body bytes of the next PUTs, and never answers. See
    /// `ResponseScript.Step.stopReading` for what the log can still know.
    public func stallUploads(afterBytes bytes: Int, next count: Int = 1) {
        faults.add(.stall(afterBytes: bytes), "PUT", count)
    }

    /// Does what the next requests of a method ask, then closes the connection in place of the answer.
    public func loseAnswers(to method: String, next count: Int = 1) {
        faults.add(.loseAnswer, method, count)
    }

    /// Takes back all faults that were not used.
    public func clearFaults() { faults.clear() }
}
