import ArgumentParser
import BackgroundCommands
import Foundation
import Stormy
import StormyWeather

extension WeatherProvider: ExpressibleByArgument {}

struct PlaceVerb: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "place", abstract: "Adds, lists, renames, moves and removes places.",
        discussion: "Example:\n  stormy place add Sydney -33.87,151.21",
        subcommands: [Add.self, List.self, Rename.self, Move.self, Remove.self])

    struct Add: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Adds a place. Without coordinates, the name of the place is looked up.",
            usage: "stormy place add <name> [<lat,lon>] [--no-sync] [--provider <service>]",
            discussion: "Example:\n  stormy place add Sydney -33.87,151.21")

        @Flag(name: .customLong("no-sync"), help: "Do not fetch the first forecast now.") var isNotFetched = false
        @Option(
            help: ArgumentHelp(
                "The weather service to use first, instead of the configured service.", valueName: "service"))
        var provider: WeatherProvider?
        @Argument(help: "A name for the place.") var name: String
        // The coordinates may begin with a minus sign, so the parser passes all words after the name unchanged.
        @Argument(
            parsing: .captureForPassthrough,
            help: ArgumentHelp(
                "The latitude and longitude in degrees. South and west are negative numbers.", valueName: "lat,lon"))
        var rest: [String] = []

        func run() async throws {
            var words = rest.filter { $0 != "--" }
            let syncs = !isNotFetched && !words.contains("--no-sync")
            words.removeAll { $0 == "--no-sync" }
            let provider = try chosenProvider(&words)
            if words.contains("--help") || words.contains("-h") { throw CleanExit.helpRequest(Self.self) }
            guard words.count <= 1, !(words.first?.hasPrefix("--") ?? false) else {
                throw CommandFailure(
                    .usage,
                    "unexpected \"\(words.last ?? "")\"; usage: stormy place add NAME [LAT,LON] [--no-sync] [--provider SERVICE]")
            }
            try StormyTool.configure()
            let trimmed = try PlaceVerb.checked(name)
            let store = try StormyStore.open()
            let coordinates = try await coordinates(words.first, name: trimmed)
            try check(provider, for: coordinates)
            let place = try store.addPlace(trimmed, coordinates, provider: provider)
            Output.line("Added \(place.name) at \(coordinates.text).")
            try await PlaceVerb.show(place, store, syncs: syncs)
        }

        /// Returns the provider, and removes the option for the provider from the arguments. The option may be before the name or
        /// after the coordinates.
        private func chosenProvider(_ words: inout [String]) throws -> WeatherProvider? {
            guard let index = words.firstIndex(where: { $0 == "--provider" || $0.hasPrefix("--provider=") }) else {
                return provider
            }
            var text = String(words.remove(at: index).dropFirst("--provider=".count))
            if text.isEmpty, words.indices.contains(index) { text = words.remove(at: index) }
            guard let chosen = WeatherProvider(rawValue: text) else {
                let known = WeatherProvider.allCases.map(\.rawValue).joined(separator: ", ")
                throw CommandFailure(.usage, "\"\(text)\" is not a weather service. Known services: \(known)")
            }
            return chosen
        }

        private func check(_ provider: WeatherProvider?, for coordinates: Coordinates) throws {
            guard let provider else { return }
            let name = provider.rawValue
            guard provider.service().covers(coordinates) else {
                throw CommandFailure(.badData, "\(name) has no forecasts for \(coordinates.text)")
            }
            guard StormySettings.current.hasContact || !provider.needsContact else {
                throw CommandFailure(
                    .badConfiguration,
                    "\(name) requires a contact address: add contact = \"you@example.org\" to [weather]"
                )
            }
        }

        private func coordinates(_ text: String?, name: String) async throws -> Coordinates {
            if let text { return try Coordinates(parsing: text) }
            let matches = try await PlaceSearch().matches(name)
            guard let best = matches.first else {
                throw CommandFailure(
                    .notFound, "no place named \"\(name)\" was found; give its coordinates: stormy place add \"\(name)\" LAT,LON")
            }
            Output.line("Found \(best.label) (\(best.coordinates.text)).")
            for other in matches.dropFirst().prefix(2) {
                Output.line("  Another place with this name: \(other.label) (\(other.coordinates.text))")
            }
            return best.coordinates
        }
    }

    struct Rename: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Renames a place. The storms of the place are kept.",
            discussion: "Example:\n  stormy place rename Sydney Home")

        @Argument(help: "The name of the place.", completion: .places) var name: String
        @Argument(help: "The new name.") var newName: String

        func run() async throws {
            try StormyTool.configure()
            let checked = try PlaceVerb.checked(newName)
            try StormyStore.open().renamePlace(name, to: checked)
            Output.line("Renamed \(name) to \(checked).")
        }
    }

    struct Move: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Moves a place to other coordinates. The storms of the place are kept.",
            usage: "stormy place move <name> <lat,lon> [--no-sync]", discussion: "Example:\n  stormy place move Home -33.9,151.2")

        @Flag(name: .customLong("no-sync"), help: "Do not fetch a forecast now.") var isNotFetched = false
        @Argument(help: "The name of the place.", completion: .places) var name: String
        // The coordinates may begin with a minus sign, so the parser passes all words after the name unchanged.
        @Argument(
            parsing: .captureForPassthrough,
            help: ArgumentHelp(
                "The latitude and longitude in degrees. South and west are negative numbers.", valueName: "lat,lon"))
        var rest: [String] = []

        func run() async throws {
            if rest.contains("--help") || rest.contains("-h") { throw CleanExit.helpRequest(Self.self) }
            let words = rest.filter { $0 != "--" && $0 != "--no-sync" }
            guard words.count == 1, let text = words.first else {
                throw CommandFailure(.usage, "usage: stormy place move NAME LAT,LON [--no-sync]")
            }
            try StormyTool.configure()
            let coordinates = try Coordinates(parsing: text)
            let store = try StormyStore.open()
            let place = try store.movePlace(name, to: coordinates)
            Output.line("Moved \(place.name) to \(coordinates.text).")
            try await PlaceVerb.show(place, store, syncs: !isNotFetched && !rest.contains("--no-sync"))
        }
    }

    /// Returns the place with a name, or all places if the name is `nil`.
    ///
    /// - Throws: ``CommandFailure`` if no place has this name, or if no place is stored.
    static func places(named name: String?, in store: StormyStore) throws -> [Place] {
        let places = try name.map { [try store.place(named: $0)] } ?? store.places()
        guard !places.isEmpty else {
            throw CommandFailure(.notFound, "no place is configured. Add a place: stormy place add Sydney -33.87,151.21")
        }
        return places
    }

    /// Returns a name in the composed Unicode form, because "Å" has two encodings that look alike.
    private static func checked(_ name: String) throws -> String {
        let trimmed = name.trimmingCharacters(in: .whitespacesAndNewlines).precomposedStringWithCanonicalMapping
        guard (1...100).contains(trimmed.count), !trimmed.contains("\n"), Output.withoutControls(trimmed) == trimmed else {
            throw CommandFailure(
                .badData, "not a valid name for a place: expected 1 to 100 characters on one line, without control characters")
        }
        return trimmed
    }

    /// Shows the first forecast of a place, and the services with official warnings for the place.
    private static func show(_ place: Place, _ store: StormyStore, syncs: Bool) async throws {
        if syncs, try await sync(place, store) { return }
        for sentence in try WarningLines(of: place, in: store).sentences { Output.line("  " + sentence) }
    }

    /// - Returns: `true` if there is a forecast.
    private static func sync(_ place: Place, _ store: StormyStore) async throws -> Bool {
        let outcomes: [CheckOutcome]
        do {
            let weather = try await AsyncOpen(store, places: [place.name], timeout: CheckVerb.patience).opened()
            if let unknown = weather.unknownRegions { Output.note("  Not used: \(unknown)") }
            outcomes = weather.outcomes
        } catch {
            let message = CommandFailure(ofStormy: error).message
            let reason = message.hasSuffix(".") ? message : message + "."
            Output.note("The first forecast could not be fetched: \(reason) The next check tries again.")
            return false
        }
        for outcome in outcomes { try CheckVerb.printForPeople(outcome, store) }
        return true
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists the places.", discussion: "Example:\n  stormy place list --json")

        @Flag(help: "Print JSON.") var json = false

        private struct Row: Encodable {
            let name: String
            let latitude: Double
            let longitude: Double
            let timeZone: OrNull<String>
            let provider: OrNull<String>
        }

        func run() async throws {
            try StormyTool.configure()
            let places = try StormyStore.open().places()
            if json {
                return try Output.json(
                    places.map {
                        Row(
                            name: $0.name, latitude: $0.latitude, longitude: $0.longitude, timeZone: OrNull($0.timeZone),
                            provider: OrNull($0.provider?.rawValue))
                    })
            }
            if places.isEmpty { Output.line("No place is configured. Add a place: stormy place add Sydney -33.87,151.21") }
            for place in places {
                Output.line(
                    "\(place.name)  \(place.coordinates?.text ?? "?")" + (place.provider.map { "  \($0.rawValue)" } ?? ""))
            }
        }
    }

    struct Remove: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Removes places, their forecasts and their storms.",
            discussion: "Example:\n  stormy place remove Sydney")

        @Argument(help: "The names of the places.", completion: .places) var names: [String]

        func run() async throws {
            try StormyTool.configure()
            let store = try StormyStore.open()
            var problem = FirstProblem()
            for (position, name) in names.enumerated() {
                do { try remove(name, store) } catch { problem.report(CommandFailure(ofStormy: error), at: position) }
            }
            try problem.throwIfAny()
        }

        private func remove(_ name: String, _ store: StormyStore) throws {
            let place = try store.place(named: name)
            let storms = try store.storms().filter { $0.place == place.id }
            try store.removePlace(name)
            StormNotifier.withdraw(storms)
            StormQuery.withdrawTrouble(at: place)
            Output.line("Removed \(name).")
        }
    }
}
