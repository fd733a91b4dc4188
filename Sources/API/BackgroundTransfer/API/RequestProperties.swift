import Foundation
import Synchronization

/// What ``URLProtocol`` has marked requests with, by the names that stand in a header of theirs.
enum RequestProperties {
    static let header = "URLProtocol-Properties"

    /// Marks kept, at most: of requests that are long gone nobody tells.
    private static let limit = 10_000

    private struct State: @unchecked Sendable {  // because what an app marks requests with is the app's to share
        var marks: [String: [String: Any]] = [:]
        var order: [String] = []
    }

    private static let state = Mutex(State())

    static func known(by name: String) -> [String: Any] { state.withLock { Held($0.marks[name] ?? [:]) }.marks }

    /// - Returns: the name under which they are found.
    static func keep(_ marks: [String: Any]) -> String {
        let (name, held) = (UUID().uuidString, Held(marks))
        state.withLock { state in
            state.marks[name] = held.marks
            state.order.append(name)
            if state.order.count > limit { state.marks[state.order.removeFirst()] = nil }
        }
        return name
    }

    private struct Held: @unchecked Sendable {  // because of the same
        let marks: [String: Any]

        init(_ marks: [String: Any]) { self.marks = marks }
    }
}
