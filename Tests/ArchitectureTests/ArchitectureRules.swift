/// The rules of ARCHITECTURE.md that Package.swift does not contain.
struct ArchitectureRules {
    /// Maps each library to the only modules that may import the library.
    var doors: [String: Set<String>]
    /// Modules without access to a clock, disk, socket or process. These modules import only Foundation and each other.
    var pure: Set<String>
    /// Modules that run inside the agent.
    var agentSide: Set<String>

    static let asDesigned = ArchitectureRules(
        doors: [
            "CLibcurl": ["CurlTransport"],
            "CLibcrypto": ["Spool"],
            "COpenSSL": ["CurlTransport", "FaultyServer"],
            "CLibnotify": ["DesktopBus", "DesktopServices", "file-chooser"],
            "CLibexpat": ["TransferMachines"],
            "CZlib": ["PhotoLocations"],
            "CCairo": ["Stormy"],
            "CCoreFoundation": ["BackgroundRuntime"],
            "GRDB": ["BackgroundLedger", "SQLiteFiles", "Stormy"],
            "GRDBSQLite": ["SQLiteFiles"],
            "CTomlplusplus": ["StormyConfiguration"],
            "CNlohmannJSON": ["StormyWeather"],
            "CWarningRegions": ["StormyWeather"],
            "ArgumentParser": ["StormyCommand", "BackgroundCommands", "Rehearsal"],
            "NIOCore": ["FaultyServer"],
            "NIOPosix": ["FaultyServer"],
            "NIOHTTP1": ["FaultyServer"],
            // Only the server of a test imports this library.
            "NIOWebSocket": [],
        ],
        pure: [
            "CLibexpat", "CNlohmannJSON", "CWarningRegions", "BackgroundScheduling", "TransferMachines", "BackgroundNotices",
            "StormyWeather",
        ],
        agentSide: ["BackgroundAgent", "CurlTransport", "DesktopServices", "BackgroundAgentTool"])
}
