import Foundation
import GRDB
import StormyWeather

extension StormyStore {
    // MARK: Unknown codes

    /// Codes that are stored. A feed of nonsense fills no disk.
    private static let mostUnknownCodes = 1000
    /// Codes that are reported at one time.
    private static let mostReportedCodes = 50

    /// Stores codes that the region table lacks, to be reported once.
    func noteUnknownCodes(_ codes: Set<RegionCode>) throws {
        if codes.isEmpty { return }
        try queue.write { database in
            for code in codes.map(\.text).sorted().prefix(Self.mostUnknownCodes) {
                try database.execute(
                    sql: """
                        INSERT OR IGNORE INTO unknownRegion (code) SELECT ? WHERE (SELECT COUNT(*) FROM unknownRegion) < ?
                        """, arguments: [code, Self.mostUnknownCodes])
            }
        }
    }

    /// Returns codes that were not reported so far, in order, and marks them as reported.
    func takeUnknownCodes() throws -> [String] {
        try queue.write { database in
            let codes = try String.fetchAll(
                database, sql: "SELECT code FROM unknownRegion WHERE NOT isReported ORDER BY code LIMIT ?",
                arguments: [Self.mostReportedCodes])
            for code in codes {
                try database.execute(sql: "UPDATE unknownRegion SET isReported = 1 WHERE code = ?", arguments: [code])
            }
            return codes
        }
    }
}
