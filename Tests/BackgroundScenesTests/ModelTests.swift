import Testing

@testable import BackgroundScenes

extension OneEnvironment {
    /// The state that an iOS app declares for its scenes.
    @MainActor
    @Suite struct ModelTests {
        @Observable final class Library {
            var titles: [String] = []
        }

        enum Sorting: String { case byDate, byTitle }

        private struct Reader: App {
            @State private var library = Library()
            @State private var count = 0
            @AppStorage("ModelTests.started") private var hasStarted = false
            @AppStorage("ModelTests.sorting") private var sorting = Sorting.byDate
            @AppStorage("ModelTests.address") private var address = URL(fileURLWithPath: "/")

            var body: some Scene {
                WindowGroup("Library", id: "library") { EmptyView().environment(library) }
                    .environment(library)
                    .backgroundTask(.appRefresh("refresh")) { await refresh() }
                WindowGroup(id: "other") { EmptyView() }
                Shelf()
            }

            func refresh() async {
                library.titles.append("new")
                count += 1
                (hasStarted, sorting, address) = (true, .byTitle, URL(fileURLWithPath: "/tmp"))
            }

            var told: String { "\(library.titles.count) \(count) \(hasStarted) \(sorting) \(address.path)" }
        }

        private struct Shelf: Scene {
            @Environment(Library.self) private var library
            @Environment(Library.self) private var perhaps: Library?

            var body: some Scene {
                WindowGroup("Shelf") { EmptyView() }.onChange(of: library.titles.count + (perhaps == nil ? 100 : 0)) { _, new in
                    library.titles.append("shelf \(new)")
                }
            }
        }

        init() { EnvironmentValues.current = EnvironmentValues() }

        @Test func `an app keeps its model and its defaults`() async {
            for key in ["started", "sorting", "address"] { UserDefaults.standard.removeObject(forKey: "ModelTests." + key) }
            let app = Reader()
            let observation = SceneObservation { app.body.collectParts().observers }
            #expect(app.told == "0 0 false byDate /")
            await app.refresh()
            #expect(app.told == "1 1 true byTitle /tmp")
            #expect(Reader().told == "0 0 true byTitle /tmp", "the next model reads the stored defaults")
            observation.enter(.inactive)
            #expect(app.told.hasPrefix("2 "), "a scene reads the model of another scene")
        }
    }
}
