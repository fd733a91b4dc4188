import ArgumentParser
import BackgroundRuntime
import Foundation
import ProcessSupport

/// The command `install`, which writes the files that this desktop needs to show the app.
public struct InstallCommand: BackgroundCommand {
    public static let configuration = describe(
        "install", "Installs the desktop entry, icon, shell completions, manual pages and the start at login.",
        example: "install --dry-run")

    @Flag(help: "Print what would be done, and change nothing.") var dryRun = false
    @Option(
        help: ArgumentHelp(
            "For packagers: the share folder into which the files are written, for example DESTDIR/usr/share.",
            visibility: .hidden)) var into: String?
    @Option(help: ArgumentHelp("For packagers: the path of the program after the installation.", visibility: .hidden))
    var program: String?

    public init() {}

    public var effect: CommandEffect { .installs }

    public func perform() async throws {
        let installation = try Self.installation(into)
        var files = Self.files(program ?? AppManifest.executableURL.path).all
        if into == nil, let shared = Self.folderBesideProgram(), shared != installation.folder.path {
            Output.line("The files of this app are already installed for all users in \(shared).")
            // The files are already installed for all users, so they are not installed for this user.
            files = []
        }
        let steps = try installation.plan(files)
        try Self.report(steps, in: installation, isDryRun: dryRun) { try installation.carryOut(steps, files) }
        if into == nil {
            try installLoginEntry()
            hints()
        }
    }

    /// Writes the login entry if no entry exists, or if the entry is not enabled or starts another program. With the login entry,
    /// unfinished work continues after the next login.
    private func installLoginEntry() throws {
        let (runtime, environment) = (AppRuntime.shared, ThisProcess.environment)
        let entry = AutostartEntry(directories: runtime.directories, environment: environment)
        let agent: String
        switch AgentStarter.findAgent(environment: environment) {
        case .success(let path): agent = path
        case .failure(let missing): return Output.note("\(BackgroundCommands.program): \(missing)")
        }
        let standing = entry.standing(agent: agent)
        guard standing != .asItShouldBe, standing != nil || runtime.hasWorkLeft else { return }
        if dryRun { return Output.line("would write the entry that starts the agent at login") }
        Output.line(try entry.install(agent: agent, displayName: runtime.manifest.displayName).path)
    }

    /// Returns the folder of the files that a package or `make install` has installed together with the program. Returns `nil` if
    /// no such files exist.
    fileprivate static func folderBesideProgram() -> String? {
        let prefix = AppManifest.executableURL.deletingLastPathComponent().deletingLastPathComponent()
        let shared = prefix.appendingPathComponent("share")
        guard let entry = files(AppManifest.executableURL.path).all.first(where: { $0.path.hasSuffix(".desktop") }),
            (try? Data(contentsOf: shared.appendingPathComponent(entry.path))) == entry.content
        else { return nil }
        return shared.path
    }

    static func files(_ program: String) -> DesktopFiles {
        let manifest = AppManifest.current
        return DesktopFiles(
            integration: .current, identifier: manifest.appIdentifier, displayName: manifest.displayName,
            version: manifest.version, program: program)
    }

    static func installation(_ folder: String?) throws -> Installation {
        if let folder { return Installation(folder: URL(exactPath: folder), list: nil) }
        let data = AppRuntime.shared.directories.data
        return Installation(folder: data.deletingLastPathComponent(), list: data.appendingPathComponent("installed.json"))
    }

    /// Runs the steps and prints them. In a dry run, the steps are only printed.
    static func report(
        _ steps: [Installation.Step], in installation: Installation, isDryRun: Bool, _ carryOut: () throws -> Void
    ) throws {
        if !isDryRun { try carryOut() }
        for case .leave(let path) in steps {
            Output.note("\(installation.folder.appendingPathComponent(path).path) was changed after the installation and is kept")
        }
        let written = steps.filter { if case .write = $0 { true } else { false } }.count
        let removed = steps.filter { if case .remove = $0 { true } else { false } }.count
        let folder = installation.folder.path
        if written + removed == 0 { return Output.line("No file in \(folder) needs a change.") }
        guard isDryRun else {
            func count(_ number: Int) -> String { number == 1 ? "1 file" : "\(number) files" }
            if written > 0 { Output.line("\(count(written)) written to \(folder).") }
            if removed > 0 { Output.line("\(count(removed)) removed from \(folder).") }
            return
        }
        for case .write(let path) in steps { Output.line("would write \(installation.folder.appendingPathComponent(path).path)") }
        for case .remove(let path) in steps {
            Output.line("would remove \(installation.folder.appendingPathComponent(path).path)")
        }
    }

    private func hints() {
        let name = BackgroundCommands.program
        if let other = CompanionProgram.findInPath(name),
            URL(exactPath: other).resolvingSymlinksInPath().path != AppManifest.executableURL.resolvingSymlinksInPath().path
        {
            Output.note(
                "the command \(name) in your PATH starts another program: \(other). "
                    + "This program is \(AppManifest.executableURL.path)"
            )
        }
        if ThisProcess.environment["SHELL"]?.hasSuffix("/zsh") == true {
            let folder = AppRuntime.shared.directories.data.deletingLastPathComponent().path + "/zsh/site-functions"
            Output.note("To use the zsh completions, add this line to ~/.zshrc before compinit: fpath=(\(folder) $fpath)")
        }
    }
}

/// The command `uninstall`, which removes the files that `install` wrote.
public struct UninstallCommand: BackgroundCommand {
    public static let configuration = describe(
        "uninstall",
        "Removes the files that the command install wrote. Scheduled and queued work is kept. "
            + "To end the work, use the command quit.",
        example: "uninstall --dry-run")

    @Flag(help: "Print what would be done, and change nothing.") var dryRun = false

    public init() {}

    public var effect: CommandEffect { .installs }

    public func perform() async throws {
        let installation = try InstallCommand.installation(nil)
        let steps = try installation.plan([])
        if steps.isEmpty, let shared = InstallCommand.folderBesideProgram() {
            return Output.line(
                "There is nothing to remove. The files in \(shared) belong to the package. Remove the package or run `make uninstall`."
            )
        }
        try InstallCommand.report(steps, in: installation, isDryRun: dryRun) { try installation.carryOut(steps, []) }
    }
}
