/// The drawing of the house: each module and what it may import. What those may import comes with them.
enum House {
    static let arrows: [String: Set<String>] = [
        "stormy": ["StormyCommand"],
        "background-agent": ["BackgroundAgentTool"],
        "tide-example": ["BackgroundTasks", "UserNotifications"],
        "StormyCommand": ["Stormy", "StormyConfiguration", "BackgroundLedger", "FaultyServer", "ArgumentParser"],
        "BackgroundAgentTool": ["BackgroundAgent", "CurlTransport", "DesktopServices"],
        "Stormy": ["BackgroundTasks", "BackgroundTransfer", "UserNotifications", "StormyWeather", "GRDB"],
        "StormyWeather": [],
        "StormyConfiguration": ["TOMLKit"],
        "BackgroundTasks": ["BackgroundRuntime"],
        "BackgroundTransfer": ["BackgroundRuntime", "CurlTransport"],
        "UserNotifications": ["BackgroundRuntime"],
        "BackgroundRuntime": ["BackgroundLedger"],
        "BackgroundAgent": ["BackgroundLedger"],
        "CurlTransport": ["TransferMachines", "CLibcurl"],
        "DesktopServices": ["BackgroundScheduling", "BackgroundNotices", "CLibnotify"],
        "BackgroundLedger": ["BackgroundScheduling", "TransferMachines", "BackgroundNotices", "CLinux", "GRDB", "Crypto"],
        "BackgroundScheduling": [],
        "TransferMachines": [],
        "BackgroundNotices": [],
        "FaultyServer": ["NIOCore", "NIOPosix", "NIOHTTP1"],
    ]

    /// Modules that decide and do not act.
    static let pure: Set<String> = ["BackgroundScheduling", "TransferMachines", "BackgroundNotices", "StormyWeather"]

    /// What every module may import. Pure ones only the first.
    static let foundation: Set<String> = ["Foundation"]
    static let system: Set<String> = ["Foundation", "FoundationNetworking", "Dispatch", "Glibc", "Synchronization"]

    /// Libraries, and the only modules that may open their door.
    static let doors: [String: Set<String>] = [
        "CLibcurl": ["CurlTransport"],
        "CLibnotify": ["DesktopServices"],
        "GRDB": ["BackgroundLedger", "Stormy"],
        "Crypto": ["BackgroundLedger"],
        "TOMLKit": ["StormyConfiguration"],
        "ArgumentParser": ["StormyCommand"],
        "NIOCore": ["FaultyServer"], "NIOPosix": ["FaultyServer"], "NIOHTTP1": ["FaultyServer"],
    ]

    /// Modules of the agent, where libdispatch's global pool would wake the process once a second for ever.
    static let agentSide: Set<String> = ["BackgroundAgent", "CurlTransport", "DesktopServices", "BackgroundAgentTool"]

    static func reachable(from module: String) -> Set<String> {
        var found: Set<String> = []
        var open = Array(arrows[module] ?? [])
        while let next = open.popLast() {
            if found.insert(next).inserted { open += arrows[next] ?? [] }
        }
        return found
    }

    /// Why a module may not import another; `nil`: it may.
    static func objection(to imported: String, in module: String) -> String? {
        if let keepers = doors[imported], !keepers.contains(module) { return "\(module) opens the door of \(imported)" }
        if pure.contains(module) { return foundation.contains(imported) ? nil : "\(module) is pure and imports \(imported)" }
        if system.contains(imported) || reachable(from: module).contains(imported) { return nil }
        return "\(module) has no arrow to \(imported)"
    }
}
