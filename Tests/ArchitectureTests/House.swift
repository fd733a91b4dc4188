/// The drawing in ARCHITECTURE.md as data: who may import whom.
struct House {
    /// Folders of `Sources`, lowest first: a module imports from its own floor and those below.
    var floors: [String]
    /// What each module imports, directly and no more.
    var arrows: [String: Set<String>]
    /// Libraries and the only modules that may import them.
    var doors: [String: Set<String>]
    /// Modules that know no clock, disk, socket or process: Foundation and one another, and nothing else.
    var pure: Set<String>
    /// Modules that run inside the agent.
    var agentSide: Set<String>

    static let asDesigned = House(
        floors: ["C", "Core", "Store", "Agent", "API", "Stormy", "TestKit", "Examples"],
        arrows: [
            // C
            "CLinux": [],
            "CLibcurl": [],
            "CLibcrypto": [],
            "COpenSSL": [],
            "CLibnotify": [],
            "CLibexpat": [],
            "CZlib": [],
            "CTomlplusplus": [],
            "CNlohmannJSON": [],
            "CWarningRegions": [],
            // Core
            "BackgroundScheduling": [],
            "TransferMachines": ["CLibexpat"],
            "BackgroundNotices": [],
            // Store
            "ProcessSupport": ["CLinux"],
            "UserUnits": ["ProcessSupport"],
            "SQLiteFiles": ["ProcessSupport"],
            "Spool": ["CLibcrypto", "CLinux", "ProcessSupport", "TransferMachines"],
            "BackgroundLedger": [
                "BackgroundNotices", "BackgroundScheduling", "CLinux", "ProcessSupport", "SQLiteFiles", "TransferMachines",
            ],
            // Agent
            "BackgroundAgent": [
                "BackgroundLedger", "BackgroundNotices", "BackgroundScheduling", "CLinux", "ProcessSupport", "Spool",
                "TransferMachines",
            ],
            "CurlTransport": ["CLibcurl", "COpenSSL", "TransferMachines"],
            "DesktopServices": ["BackgroundNotices", "BackgroundScheduling", "CLibnotify", "CLinux"],
            "RehearsalSupport": ["BackgroundScheduling", "ProcessSupport"],
            "BackgroundAgentTool": [
                "BackgroundAgent", "BackgroundLedger", "BackgroundNotices", "BackgroundScheduling", "CLinux", "CurlTransport",
                "DesktopServices", "ProcessSupport", "RehearsalSupport", "UserUnits",
            ],
            "background-agent": ["BackgroundAgentTool"],
            // API
            "BackgroundRuntime": ["BackgroundLedger", "BackgroundScheduling", "CLinux", "ProcessSupport", "UserUnits"],
            "BackgroundTasks": ["BackgroundLedger", "BackgroundRuntime", "BackgroundScheduling", "ProcessSupport"],
            "BackgroundTransfer": [
                "BackgroundLedger", "BackgroundRuntime", "BackgroundScheduling", "CurlTransport", "ProcessSupport", "Spool",
                "TransferMachines",
            ],
            "UserNotifications": ["BackgroundLedger", "BackgroundNotices", "BackgroundRuntime", "ProcessSupport", "Spool"],
            "BackgroundScenes": ["BackgroundRuntime", "BackgroundTasks", "BackgroundTransfer", "UserNotifications"],
            "BackgroundCommands": [
                "BackgroundLedger", "BackgroundNotices", "BackgroundRuntime", "BackgroundScheduling", "BackgroundTasks",
                "BackgroundTransfer", "ProcessSupport", "Spool", "UserUnits",
            ],
            // Stormy
            "StormyWeather": ["CNlohmannJSON", "CWarningRegions", "TransferMachines"],
            "StormyConfiguration": ["CTomlplusplus", "StormyWeather", "TransferMachines"],
            "Stormy": [
                "BackgroundRuntime", "BackgroundScenes", "BackgroundTasks", "BackgroundTransfer", "ProcessSupport", "SQLiteFiles",
                "StormyWeather", "TransferMachines", "UserNotifications",
            ],
            "StormyCommand": [
                "BackgroundCommands", "BackgroundRuntime", "BackgroundScenes", "BackgroundTasks", "BackgroundTransfer",
                "ProcessSupport", "Stormy", "StormyConfiguration", "StormyWeather",
            ],
            "PhotoLocations": ["CZlib"],
            "stormy": ["StormyCommand"],
            "photo-cleaner": ["CLinux", "PhotoLocations"],
            "file-chooser": ["CLibnotify", "CLinux"],
            // TestKit
            "ServerScripts": [],
            "FaultyServer": ["COpenSSL", "ServerScripts"],
            "BackgroundTasksTesting": [
                "BackgroundAgent", "BackgroundLedger", "BackgroundNotices", "BackgroundRuntime", "BackgroundScenes",
                "BackgroundScheduling", "BackgroundTasks", "BackgroundTransfer", "ProcessSupport", "ServerScripts",
                "TransferMachines",
            ],
            "Rehearsal": [
                "BackgroundCommands", "BackgroundLedger", "BackgroundRuntime", "BackgroundScheduling", "CLinux", "FaultyServer",
                "ProcessSupport", "RehearsalSupport", "Spool",
            ],
            "stormy-rehearse": ["Rehearsal", "background-agent", "photo-cleaner", "stormy"],
            "Simulation": [
                "BackgroundAgent", "BackgroundLedger", "BackgroundScheduling", "BackgroundTasks", "BackgroundTasksTesting",
                "ProcessSupport", "ServerScripts", "Spool", "TransferMachines",
            ],
            "simulate": ["Simulation"],
            "proving-ground": [
                "BackgroundCommands", "BackgroundLedger", "BackgroundRuntime", "BackgroundScheduling", "BackgroundTasks",
                "UserNotifications",
            ],
            "fuzz-wire": ["TransferMachines"],
            "fuzz-resume": ["BackgroundTransfer"],
            "fuzz-ledger": ["BackgroundLedger"],
            "fuzz-configuration": ["StormyConfiguration", "StormyWeather"],
            "fuzz-photo": ["Stormy"],
            "fuzz-locations": ["PhotoLocations"],
            // Examples
            "tide-example": [
                "BackgroundCommands", "BackgroundScenes", "BackgroundTasks", "BackgroundTransfer", "UserNotifications",
            ],
            "zashi-example": ["BackgroundCommands", "BackgroundTasks", "BackgroundTransfer"],
            "realm-example": [
                "BackgroundCommands", "BackgroundScenes", "BackgroundTasks", "BackgroundTransfer", "UserNotifications",
            ],
            "courier-example": [
                "BackgroundCommands", "BackgroundScenes", "BackgroundTasks", "BackgroundTransfer", "UserNotifications",
            ],
            // Tests/StandIns
            "StandInSwiftCrossUI": [],
            "StandInAdwaita": [],
            "crossui-example": [
                "BackgroundCommands", "BackgroundTasks", "BackgroundTransfer", "StandInSwiftCrossUI", "UserNotifications",
            ],
            "adwaita-example": [
                "BackgroundCommands", "BackgroundTasks", "BackgroundTransfer", "StandInAdwaita", "UserNotifications",
            ],
            // Tests/StormyFixtures and Tests/TestSamples
            "StormyFixtures": [], "TestSamples": [],
            // Tests/Sanitizers
            "SanitizedSynchronization": [],
        ],
        doors: [
            "CLibcurl": ["CurlTransport"],
            "CLibcrypto": ["Spool"],
            "COpenSSL": ["CurlTransport", "FaultyServer"],
            "CLibnotify": ["DesktopServices", "file-chooser"],
            "CLibexpat": ["TransferMachines"],
            "CZlib": ["PhotoLocations"],
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
