import Foundation

/// The handling of one request by a route. Used by one thread at a time.
package protocol Exchange: AnyObject {
    /// A script that is known when the headers arrived. The `beginning` of the script determines when the script is played.
    var opening: ResponseScript? { get }
    /// Receives bytes of the request's body, as they arrive.
    func receive(_ bytes: Data)
    /// Returns the response when the request is complete, unless the opening was begun before.
    func finish() -> ResponseScript
    /// Handles a connection that ended or was abandoned before the request was complete.
    func abandon()
}

/// Responds with a script and drops the request's body.
final class ScriptedExchange: Exchange {
    private let script: ResponseScript

    init(_ script: ResponseScript) { self.script = script }

    var opening: ResponseScript? { script }
    func receive(_ bytes: Data) {}
    func finish() -> ResponseScript { script }
    func abandon() {}
}
