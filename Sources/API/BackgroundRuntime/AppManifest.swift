import ProcessSupport
import BackgroundLedger
import Foundation
import Synchronization

/// The properties of an app that must be known before the app's code runs. On Apple's systems, `Info.plist` contains these
/// properties.
///
/// A program can set the manifest with ``AppManifest/use(propertyList:)``. Otherwise the manifest is a file:
/// `<executable>-Info.plist` next to the executable, the same name in SwiftPM's `<package>_<executable>.resources`, or
/// `Info.plist` next to the executable. The first of these files that exists is used. The first two names contain the
/// executable's name, because SwiftPM creates no bundles and several executables may be in one folder.
package struct AppManifest: Sendable, Equatable {
    /// The value of `CFBundleIdentifier`. The app's folders and agent have this name.
    package var appIdentifier: String
    package var displayName: String
    package var version: String
    /// The identifiers that requests of the app may have: the value of `BGTaskSchedulerPermittedIdentifiers`. An entry may be a
    /// wildcard that ends in `.*`.
    package var permittedIdentifiers: [String]
    /// The value of `CFBundleExecutable`: the name of the executable that the agent launches, if several executables share this
    /// manifest. The other executables are helpers, like extensions on Apple's systems, and can also submit requests. If the
    /// value is `nil`, the agent launches the executable that ran last.
    package var executableName: String?
    /// The value of `BackgroundLaunchEnvironment`: the names of the environment variables that launches inherit. An entry may end
    /// in `*`. Apple's API has no equivalent.
    package var launchVariables: [String]?

    package init(appIdentifier: String, displayName: String, version: String, permittedIdentifiers: [String]) {
        self.appIdentifier = appIdentifier
        self.displayName = displayName
        self.version = version
        self.permittedIdentifiers = permittedIdentifiers
    }

    /// The reason why a property list is not a valid manifest.
    package enum Failure: Error, Equatable, CustomStringConvertible {
        case notAPropertyList(String)
        case badIdentifier(String)
        case badPermittedList(String)
        case badLaunchVariables(String)

        package var description: String {
            switch self {
            case .notAPropertyList(let place): "\(place) is not a property list"
            case .badPermittedList(let place):
                "BGTaskSchedulerPermittedIdentifiers in \(place) is not an array of strings"
            case .badLaunchVariables(let place):
                "BackgroundLaunchEnvironment in \(place) is not an array of strings"
            case .badIdentifier(let identifier):
                "CFBundleIdentifier \"\(identifier)\" is not a valid app id: expected 1 to 64 letters, digits, '.', '-' or '_'"
            }
        }
    }

    /// Creates a manifest from a property list in XML or binary form.
    package init(propertyList: Data, place: String = "Info.plist", executableName: String = Self.executableURL.lastPathComponent)
        throws
    {
        guard let plist = try? PropertyListSerialization.propertyList(from: propertyList, format: nil) as? [String: Any]
        else { throw Failure.notAPropertyList(place) }
        let identifier = plist["CFBundleIdentifier"] as? String ?? executableName
        guard AppDirectories.isUsable(identifier) else { throw Failure.badIdentifier(identifier) }
        let list = plist["BGTaskSchedulerPermittedIdentifiers"]
        guard let permitted = list == nil ? [] : list as? [String] else { throw Failure.badPermittedList(place) }
        self.init(
            appIdentifier: identifier, displayName: plist["CFBundleDisplayName"] as? String ?? executableName,
            version: plist["CFBundleShortVersionString"] as? String ?? "0",
            permittedIdentifiers: permitted)
        let variables = plist["BackgroundLaunchEnvironment"]
        launchVariables = variables as? [String]
        guard variables == nil || launchVariables != nil else { throw Failure.badLaunchVariables(place) }
        self.executableName = (plist["CFBundleExecutable"] as? String).flatMap { $0.contains("/") ? nil : $0 }
    }

    /// The executable that the agent launches for this app.
    package var launchedExecutable: URL {
        guard let executableName else { return Self.executableURL }
        let named = Self.executableURL.deletingLastPathComponent().appendingPathComponent(executableName)
        return access(named.path, X_OK) == 0 ? named : Self.executableURL
    }

    /// Returns whether the manifest permits requests with this identifier.
    package func permits(_ identifier: String) -> Bool { !Self.isWildcard(identifier) && permitsHandler(of: identifier) }

    /// Returns whether the manifest permits a handler of this identifier. The identifier of a handler may be a wildcard. A
    /// wildcard is permitted if ``permittedIdentifiers`` contains an equal wildcard, or another wildcard that matches it.
    package func permitsHandler(of identifier: String) -> Bool {
        // An identifier with control characters is refused, because the output of commands contains identifiers, and a control
        // character would break the line.
        guard !identifier.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) else { return false }
        return permittedIdentifiers.contains { $0 == identifier || Self.isWildcard($0) && Self.wildcard($0, covers: identifier) }
    }

    package static func isWildcard(_ identifier: String) -> Bool { identifier.hasSuffix(".*") }

    /// - Parameter wildcard: a wildcard. The `*` at the end matches one or more characters of an identifier.
    package static func wildcard(_ wildcard: String, covers identifier: String) -> Bool {
        identifier.hasPrefix(wildcard.dropLast()) && identifier.utf8.count >= wildcard.utf8.count
    }

    /// Returns whether ``permittedIdentifiers`` contains exactly this identifier. A wildcard that matches the identifier is not
    /// sufficient.
    package func names(_ identifier: String) -> Bool { permittedIdentifiers.contains(identifier) }

    // MARK: The manifest of this process

    private static let chosen = Mutex<AppManifest?>(nil)

    /// Sets the manifest of this process from a property list, which is usually embedded in the code. Call this method before all
    /// other functions.
    package static func use(propertyList: Data) throws {
        let manifest = try AppManifest(propertyList: propertyList)
        chosen.withLock { $0 = manifest }
        MainBundle.teach(manifest)
    }

    /// The manifest of this process. If no manifest is found, the manifest has the executable's name and permits no identifiers.
    package static var current: AppManifest {
        chosen.withLock { chosen in
            if let chosen { return chosen }
            let found = besideExecutable()
            chosen = found
            MainBundle.teach(found)
            return found
        }
    }

    private static func besideExecutable() -> AppManifest {
        let executable = executableURL
        let name = executable.lastPathComponent
        let folder = executable.deletingLastPathComponent()
        let resources = ((try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? [])
            .filter { $0.hasSuffix("_\(name).resources") }.sorted().map { "\($0)/\(name)-Info.plist" }
        for candidate in ["\(name)-Info.plist"] + resources + ["Info.plist"] {
            let url = folder.appendingPathComponent(candidate)
            guard let data = contents(of: url, name) else { continue }
            do {
                return try AppManifest(propertyList: data, place: url.path, executableName: name)
            } catch {
                StandardError.write("\(name): \(error); no requests are permitted\n")
            }
        }
        return AppManifest(
            appIdentifier: AppDirectories.isUsable(name) ? name : "app", displayName: name, version: "0", permittedIdentifiers: []
        )
    }

    /// Returns the content of a manifest file. If the file exists but cannot be read, the process ends. Without the manifest, the
    /// app would have another identity and would use other folders.
    private static func contents(of url: URL, _ name: String) -> Data? {
        do {
            return try RetriedFileRead.contents(of: url)
        } catch {
            StandardError.write("\(name): \(url.path) cannot be read\n")
            ProcessExit.end(75)
        }
    }

    /// The executable of this process.
    package static var executableURL: URL { URL(fileURLWithPath: ThisProcess.executablePath) }
}
