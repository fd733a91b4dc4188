import Foundation

/// The handling of one request by a route. One thread at a time uses an exchange.
package protocol Exchange: AnyObject {
    /// A script that is known when the request's headers have arrived. The `beginning` of the script determines when the script
    /// is played.
    var opening: ResponseScript? { get }
    /// Receives bytes of the request's body, as they arrive.
    func receive(_ bytes: Data)
    /// Returns the response when the request is complete, unless the script of `opening` has begun before.
    func finish() -> ResponseScript
    /// Handles a connection that ended before the request was complete.
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
