import Foundation
import Testing

extension EndToEnd {
    /// Tests of apps whose scenes and windows belong to a GUI library. The page "Beside a GUI library" describes the bridge.
    @Suite struct WindowTests {
        @Test(arguments: ["crossui-example", "adwaita-example"])
        func `a background launch opens no window, and a start by the user does`(_ app: String) throws {
            let home = try Home(app: app)
            let screen = home.folder.appendingPathComponent("screen")
            func windows() -> [String] {
                ((try? String(contentsOf: screen, encoding: .utf8)) ?? "").split(separator: "\n").map(String.init)
            }
            home.environment["WINDOW_LOG"] = screen.path
            #expect(try home.run(app, []).status == 0)
            #expect(windows() == ["window Tide: High at six"])
            let wake = try home.run(app, ["background", "simulate", "launch", "TideMorning", "--wait"])
            #expect(wake.output.contains("completed"), "\(wake)")
            try home.wait("what the wake told") { try $0.notification("tide") }
            #expect(windows().count == 1, "a launch and a command open no window")
            #expect(try home.run(app, []).status == 0)
            #expect(windows().count == 2)
        }
    }
}
