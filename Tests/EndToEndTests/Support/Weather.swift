import FaultyServer
import Foundation
import StormyFixtures

extension Weather {
    static func serve(_ script: ResponseScript, on server: FaultyServer) { server.route("GET", path, script) }

    /// Serves a stormy forecast. The headers are sent immediately. The body is sent when the test opens the gate "rest", which
    /// this method closes.
    static func serveHeld(on server: FaultyServer) {
        server.closeGate("rest")
        let forecast = forecast()
        serve(
            ResponseScript([
                .status(200), .headers(["Content-Length": "\(forecast.utf8.count)"]), .hold(until: "rest"),
                .body(.text(forecast)),
            ]), on: server)
    }
}
