import FaultyServer
import Foundation
import StormyFixtures

extension Weather {
    static func serve(_ script: ResponseScript, on server: FaultyServer) { server.route("GET", path, script) }

    /// A stormy forecast whose head comes at once and whose body waits for the gate "rest", closed here.
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
