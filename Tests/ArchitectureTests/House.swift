/// The table of DESIGN.md, "The modules", as data: who may import whom.
struct House {
    /// What stands behind each module's arrow. What that may import is allowed too.
    var arrows: [String: Set<String>]
    /// Libraries and the only modules that may import them.
    var doors: [String: Set<String>]
    /// Modules that know no clock, disk, socket or process: Foundation and nothing else.
    var pure: Set<String>
    /// Modules that run inside the agent.
    var agentSide: Set<String>

    static let asDesigned = House(
        arrows: [
            // tool
            "stormy": ["StormyCommand"],
            "StormyCommand": ["Stormy", "StormyConfiguration", "BackgroundCommands", "BackgroundLedger"],
            "stormy-rehearse": ["Rehearsal"],
            "Rehearsal": ["BackgroundCommands", "BackgroundLedger", "FaultyServer"],
            "background-agent": ["BackgroundAgentTool"],
            "BackgroundAgentTool": ["BackgroundAgent", "CurlTransport", "DesktopServices"],
            "tide-example": ["BackgroundTasks", "BackgroundCommands", "UserNotifications"],
            "zashi-example": ["BackgroundTasks", "BackgroundTransfer", "BackgroundCommands"],
            "realm-example": ["BackgroundTasks", "BackgroundTransfer", "BackgroundCommands"],
            "courier-example": ["BackgroundTasks", "BackgroundTransfer", "BackgroundCommands"],
            "proving-ground": ["BackgroundTasks", "BackgroundCommands", "BackgroundLedger"],
            // product
            "Stormy": ["BackgroundTasks", "BackgroundTransfer", "UserNotifications", "StormyWeather"],
            "StormyWeather": [],
            "StormyConfiguration": ["CTomlplusplus", "TransferMachines"],
            "photo-cleaner": ["PhotoMetadata"],
            "file-chooser": ["DesktopServices"],
            "PhotoMetadata": ["CLibgexiv2"],
            // API
            "BackgroundTasks": ["BackgroundRuntime"],
            "BackgroundTransfer": ["BackgroundRuntime", "CurlTransport"],
            "UserNotifications": ["BackgroundRuntime"],
            "BackgroundRuntime": ["BackgroundLedger"],
            "BackgroundCommands": ["BackgroundTasks"],
            // system
            "BackgroundAgent": ["BackgroundLedger"],
            "CurlTransport": ["TransferMachines", "CLibcurl", "COpenSSL"],
            "DesktopServices": ["BackgroundScheduling", "BackgroundNotices", "CLibnotify"],
            // border
            "BackgroundLedger": ["BackgroundScheduling", "TransferMachines", "BackgroundNotices", "CLinux", "CLibcrypto"],
            // core
            "BackgroundScheduling": [],
            "TransferMachines": [],
            "BackgroundNotices": [],
            // C
            "CLibcurl": [],
            "CLibcrypto": [],
            "COpenSSL": [],
            "CLibnotify": [],
            "CLibgexiv2": [],
            "CLinux": [],
            "CTomlplusplus": [],
            // test support
            "ServerScripts": [],
            "FaultyServer": ["ServerScripts", "COpenSSL"],
            "BackgroundTasksTesting": [
                "BackgroundTasks", "BackgroundTransfer", "UserNotifications", "BackgroundAgent", "ServerScripts",
            ],
            "Simulation": ["BackgroundTasksTesting", "BackgroundTasks"],
            "simulate": ["Simulation"],
            "SanitizedSynchronization": [],
            "fuzz-wire": ["TransferMachines"],
            "fuzz-resume": ["BackgroundTransfer"],
            "fuzz-ledger": ["BackgroundLedger"],
            "fuzz-configuration": ["StormyConfiguration", "StormyWeather"],
        ],
        doors: [
            "CLibcurl": ["CurlTransport"],
            "CLibcrypto": ["BackgroundLedger"],
            "COpenSSL": ["CurlTransport", "FaultyServer"],
            "CLibnotify": ["DesktopServices"],
            "CLibgexiv2": ["PhotoMetadata"],
            "GRDB": ["BackgroundLedger", "Stormy"],
            "CTomlplusplus": ["StormyConfiguration"],
            "ArgumentParser": ["StormyCommand", "BackgroundCommands", "Rehearsal"],
            "NIOCore": ["FaultyServer"],
            "NIOPosix": ["FaultyServer"],
            "NIOHTTP1": ["FaultyServer"],
        ],
        pure: ["BackgroundScheduling", "TransferMachines", "BackgroundNotices", "StormyWeather"],
        agentSide: ["BackgroundAgent", "CurlTransport", "DesktopServices", "BackgroundAgentTool"])

    /// Everything of the package that a module may import.
    func closure(of module: String) -> Set<String> {
        var seen: Set<String> = []
        var open = Array(arrows[module] ?? [])
        while let next = open.popLast() {
            if seen.insert(next).inserted { open += arrows[next] ?? [] }
        }
        return seen
    }
}
