import Testing

@testable import BackgroundScenes

@MainActor
private final class ReceivedEvents {
    var lines: [String] = []
}

extension OneEnvironment {
    /// Tests of `@Environment(\.scenePhase)` and `.onChange(of:)`, which iOS apps use to schedule work when the background phase
    /// begins.
    @MainActor
    @Suite struct ScenePhaseTests {
        private struct Observing: App {
            @Environment(\.scenePhase) private var scenePhase
            let heard: ReceivedEvents

            init() { heard = ReceivedEvents() }

            var body: some Scene {
                WindowGroup { Text("window") }
                    .onChange(of: scenePhase) { phase in
                        switch phase {
                        case .background: heard.lines.append("schedule")
                        case .inactive, .active: break
                        }
                    }
                    .onChange(of: scenePhase) { old, new in heard.lines.append("\(old) to \(new)") }
                    .onChange(of: scenePhase == .active, initial: true) { heard.lines.append("active: \(scenePhase == .active)") }
                    .backgroundTask(.appRefresh("a")) {}
            }
        }

        init() { EnvironmentValues.current = EnvironmentValues() }

        @Test func `the scenes observe every phase of a manual start`() {
            let app = Observing()
            let observation = SceneObservation { app.body.collectParts().observers }
            #expect(app.heard.lines == ["active: false"], "the observer receives the initial value once")
            app.heard.lines = []
            observation.enter(.inactive)
            #expect(app.heard.lines == ["background to inactive"])
            app.heard.lines = []
            observation.enter(.active)
            #expect(app.heard.lines == ["inactive to active", "active: true"])
            app.heard.lines = []
            observation.enter(.active)
            #expect(app.heard.lines.isEmpty, "nothing changed")
            observation.enter(.inactive)
            observation.enter(.background)
            #expect(app.heard.lines == ["active to inactive", "active: false", "schedule", "inactive to background"])
        }

        @Test func `the phases have the same order as on iOS`() {
            #expect(ScenePhase.background < .inactive && ScenePhase.inactive < .active)
        }

        @Test func `changes in several scenes are all observed`() {
            struct Two: App {
                @Environment(\.scenePhase) private var phase
                let heard = ReceivedEvents()

                var body: some Scene {
                    Worker {}.onChange(of: phase) { _, _ in heard.lines.append("one") }
                    WindowGroup { Text("two") }.onChange(of: phase) { _, _ in heard.lines.append("two") }
                }
            }
            let app = Two()
            SceneObservation { app.body.collectParts().observers }.enter(.active)
            #expect(app.heard.lines == ["one", "two"])
        }
    }
}
