/// The rules of ARCHITECTURE.md that Package.swift does not say.
struct House {
    /// Libraries and the only modules that may import them.
    var doors: [String: Set<String>]
    /// Modules that know no clock, disk, socket or process: Foundation and one another, and nothing else.
    var pure: Set<String>
    /// Modules that run inside the agent.
    var agentSide: Set<String>

    static let asDesigned = House(
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
            // For a test's server.
            "NIOWebSocket": [],
        ],
        pure: [
            "CLibexpat", "CNlohmannJSON", "CWarningRegions", "BackgroundScheduling", "TransferMachines", "BackgroundNotices",
            "StormyWeather",
        ],
        agentSide: ["BackgroundAgent", "CurlTransport", "DesktopServices", "BackgroundAgentTool"])
}
