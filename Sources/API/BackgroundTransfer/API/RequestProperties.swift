import Foundation
import ProcessSupport
import Synchronization

/// The properties that ``URLProtocol`` has attached to requests. The request itself contains only a header with a random name as
/// its value. This type stores the properties in memory, by this name.
enum RequestProperties {
    static let header = "URLProtocol-Properties"

    /// The maximum number of names under which properties are stored. A maximum is necessary, because this type is not notified
    /// when a request is deallocated.
    private static let limit = 10_000

    private struct State: @unchecked Sendable {  // Unchecked, because the app may share the values that it attaches to requests
        var marks: [String: [String: Any]] = [:]
        var order: [String] = []
    }

    private static let state = Mutex(State())

    static func known(by name: String) -> [String: Any] { state.withLock { Held($0.marks[name] ?? [:]) }.marks }

    /// - Returns: the name under which the properties are stored.
    static func store(_ marks: [String: Any]) -> String {
        let (name, held) = (UUID.random().uuidString, Held(marks))
        state.withLock { state in
            state.marks[name] = held.marks
            state.order.append(name)
            if state.order.count > limit { state.marks[state.order.removeFirst()] = nil }
        }
        return name
    }

    private struct Held: @unchecked Sendable {  // Unchecked, because the app may share the values that it attaches to requests
        let marks: [String: Any]

        init(_ marks: [String: Any]) { self.marks = marks }
    }
}
