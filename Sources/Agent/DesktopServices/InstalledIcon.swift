import Foundation

/// Searches for an icon by its name. If the desktop cannot find an icon, a server may show a broken image, so only existing icons
/// are used.
enum InstalledIcon {
    /// Returns the icon's name or path if the icon exists. A name must exist in the fallback theme of all icon themes, or in
    /// `pixmaps`. The Icon Theme Specification, "Directory Layout", defines these folders.
    ///
    /// Each call lists the sizes of the fallback theme in each data folder.
    static func name(_ name: String, environment: [String: String] = ProcessInfo.processInfo.environment) -> String? {
        if name.hasPrefix("/") { return FileManager.default.fileExists(atPath: name) ? name : nil }
        guard !name.isEmpty, !name.contains("/") else { return nil }
        return dataFolders(environment).contains { has(name, in: $0) } ? name : nil
    }

    private static func dataFolders(_ environment: [String: String]) -> [String] {
        func absolute(_ variable: String) -> String? { environment[variable].flatMap { $0.hasPrefix("/") ? $0 : nil } }
        let own = absolute("XDG_DATA_HOME") ?? (absolute("HOME") ?? NSHomeDirectory()) + "/.local/share"
        let shared = environment["XDG_DATA_DIRS"].flatMap { $0.isEmpty ? nil : $0 } ?? "/usr/local/share:/usr/share"
        return [own] + shared.split(separator: ":").map(String.init).filter { $0.hasPrefix("/") }
    }

    private static func has(_ name: String, in folder: String) -> Bool {
        let files = ["svg", "png"].map { "\(name).\($0)" }
        func isThere(_ place: String) -> Bool { files.contains { FileManager.default.fileExists(atPath: "\(place)/\($0)") } }
        let theme = folder + "/icons/hicolor"
        let sizes = (try? FileManager.default.contentsOfDirectory(atPath: theme)) ?? []
        return sizes.contains { isThere("\(theme)/\($0)/apps") } || isThere(folder + "/pixmaps")
    }
}
