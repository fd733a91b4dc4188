import Foundation

/// What a route does with one request. Used by one thread at a time.
package protocol Exchange: AnyObject {
    /// A script known at the head. Its `beginning` says when it is played.
    var opening: ResponseScript? { get }
    /// Bytes of the request's body, as they arrive.
    func receive(_ bytes: Data)
    /// The request is complete: the answer, if the opening was not begun before.
    func finish() -> ResponseScript
    /// The connection ended, or was given up, before the request was complete.
    func abandon()
}

/// Answers by a script and lets the request's body fall.
final class ScriptedExchange: Exchange {
    private let script: ResponseScript

    init(_ script: ResponseScript) { self.script = script }

    var opening: ResponseScript? { script }
    func receive(_ bytes: Data) {}
    func finish() -> ResponseScript { script }
    func abandon() {}
}
