import Foundation
import StormyWeather
import Testing

/// A row of the list of towns. The columns up to `expected` were written before the region table was read.
private struct Town {
    let name: String
    let place: Coordinates
    /// The kind of place: "port", "island" or empty.
    let kind: String
    /// A part of the name of the expected region, or "none".
    let expected: String
    /// The codes of the regions in the table if they differ from the expected region. Several codes are joined by "+". "none" if
    /// the table has no region; empty if the table has the expected region.
    let found: String
    /// The reason why the table differs from the expected region.
    let note: String

    init?(_ line: String) {
        let fields = line.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        guard fields.count == 7, let latitude = Double(fields[1]), let longitude = Double(fields[2]),
            let place = try? Coordinates(latitude: latitude, longitude: longitude)
        else { return nil }
        (name, self.place, kind, expected) = (fields[0], place, fields[3], fields[4])
        (found, note) = (fields[5], fields[6])
    }
}

/// Returns the letters of a text, without case and without accents.
private func folded(_ text: String) -> String {
    text.folding(options: [.caseInsensitive, .diacriticInsensitive], locale: Locale(identifier: "en")).filter(\.isLetter)
}

@Suite struct EuropeanTownTests {
    private let lines: [String]
    private let towns: [Town]

    init() throws {
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Fixtures/european_towns.csv")
        lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n").dropFirst().map(String.init)
        towns = lines.compactMap(Town.init)
    }

    @Test func `the list has 200 towns with 25 ports and islands`() {
        #expect(towns.count == lines.count && towns.count >= 200)
        #expect(Set(towns.map(\.name)).count == towns.count)
        #expect(towns.count { $0.kind == "port" } >= 25 && towns.count { $0.kind == "island" } >= 25)
        let names = Set(towns.map(\.name))
        #expect(names.isSuperset(of: ["Sofia", "Helsinki", "Reykjavík", "Cádiz", "Oslo"]))
    }

    @Test func `every town is in the expected region or its difference is explained`() {
        for town in towns {
            let regions = RegionCoverage(of: town.place).regions
            let codes = regions.isEmpty ? "none" : regions.map(\.code).joined(separator: "+")
            let isExpected =
                town.expected == "none"
                ? regions.isEmpty : regions.contains { folded($0.name).contains(folded(town.expected)) }
            if town.found.isEmpty {
                #expect(isExpected, "\(town.name): \(regions.map(\.text))")
            } else {
                #expect(!isExpected, "\(town.name) is as expected now: remove the note")
                #expect(codes == town.found && !town.note.isEmpty, "\(town.name): \(regions.map(\.text))")
            }
            #expect(regions.allSatisfy { !$0.isSea }, "\(town.name)")
        }
        #expect(towns.count { $0.found.isEmpty } >= 180)
    }

    @Test func `every town of the list has a feed or a reason`() {
        for town in towns {
            let coverage = RegionCoverage(of: town.place)
            #expect(coverage.regions.isEmpty == (coverage.gap != nil), "\(town.name)")
            #expect(!coverage.countries.isEmpty || coverage.gap == .nothingNear, "\(town.name)")
        }
    }
}
