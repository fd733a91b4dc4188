import BackgroundCommands
import BackgroundRuntime
import Foundation
import Stormy
import StormyConfiguration

/// The requirements of Stormy that `doctor` checks, in addition to the requirements of every app.
enum StormyExamination {
    static func findings(_ context: DoctorCommand.Context) -> [DoctorFinding] {
        let directories = AppRuntime.shared.directories
        let file = directories.configuration.appendingPathComponent("config.toml").path
        var rows: [DoctorFinding] = []
        do {
            let configuration = try Configuration.load(path: file)
            StormySettings.current = try StormyTool.settings(configuration, dataFolder: directories.data)
            rows.append(
                DoctorFinding(
                    "configuration", .ok,
                    FileManager.default.fileExists(atPath: file) ? file : "No configuration file exists, so the defaults apply."))
            rows += DestinationExamination(configuration: configuration).findings
        } catch {
            StormySettings.current = StormySettings(dataFolder: directories.data)
            rows.append(refused(error, file))
        }
        return rows + StoreExamination(context: context, folder: directories.data).findings
            + [helper("photo-cleaner", .failed, "no photo is uploaded", startedWith: [directories.data.path])]
            + [chooser]
    }

    /// Returns the finding about the file chooser that the photo button opens.
    private static var chooser: DoctorFinding {
        let name = "file-chooser"
        let row = helper(name, .warning, "the desktop's own file chooser cannot be used", startedWith: nil)
        // Without a desktop, the user cannot press the photo button.
        guard ActionNotification.isOnDesktop, row.status == .ok, case .success(let path) = CompanionProgram.find(name),
            let trouble = CompanionProgram.trouble(starting: path, ["--check"])
        else { return row }
        if let other = ["zenity", "kdialog"].compactMap({ CompanionProgram.findInPath($0) }).first {
            return DoctorFinding(name, .ok, "\(other), because the desktop has no portal")
        }
        return DoctorFinding(
            name, .warning,
            """
            the photo button of a notification cannot open a file chooser (\(trouble)). Install xdg-desktop-portal with the backend of \
            your desktop, for example xdg-desktop-portal-gtk, or install zenity
            """)
    }

    /// The configuration belongs to the user, so `doctor` may suggest to rename the file, but does not rename the file.
    private static func refused(_ error: any Error, _ file: String) -> DoctorFinding {
        let word = ShellWord.quoted(file)
        let message = CommandFailure(ofStormy: error).message
        if let error = error as? ConfigurationError, case .exposedCredential = error.problem {
            return DoctorFinding("configuration", .failed, message, fix: .init("chmod 600 \(word)", isSafe: true))
        }
        return DoctorFinding(
            "configuration", .failed, "\(message) (correct the file, or move the file away to use the defaults)",
            fix: .init("mv \(word) \(ShellWord.quoted(file + ".aside"))"))
    }

    /// Checks a program that is installed in the same place as this program.
    ///
    /// - Parameter arguments: arguments with which the program exits successfully and does nothing. `nil` if the program is not
    ///   started.
    private static func helper(
        _ name: String, _ status: DoctorFinding.Status, _ consequence: String, startedWith arguments: [String]?
    ) -> DoctorFinding {
        switch CompanionProgram.find(name) {
        case .failure(let missing):
            let withoutMode = missing.places.first { FileManager.default.fileExists(atPath: $0) }
            let fix = withoutMode.map { DoctorFinding.Fix("chmod +x \(ShellWord.quoted($0))", isSafe: true) }
            let reason = withoutMode.map { "\($0) is not executable" } ?? "\(missing)"
            return DoctorFinding(name, status, "\(reason): \(consequence)", fix: fix)
        case .success(let path):
            guard let arguments, FileManager.default.fileExists(atPath: arguments[0]) else {
                return DoctorFinding(name, .ok, path)
            }
            guard let trouble = CompanionProgram.trouble(starting: path, arguments) else { return DoctorFinding(name, .ok, path) }
            return DoctorFinding(name, status, "\(path) does not work (\(trouble)): \(consequence)")
        }
    }
}

/// Examines the configured destinations of photos.
private struct DestinationExamination {
    let configuration: Configuration
    private let check = "destination"

    var findings: [DoctorFinding] {
        let destinations = configuration.upload.destinations
        guard !destinations.isEmpty else { return [DoctorFinding(check, .ok, "No upload destination is configured.")] }
        return destinations.keys.sorted().map { name in
            let destination = destinations[name]!
            if let row = secretFile(destination, name) { return row }
            do {
                let made = try Destinations(configuration).named(name)
                if made.url.scheme == "http", made.credential != nil, !Self.isHere(made.url.host) {
                    return DoctorFinding(
                        check, .warning, "\(name): the password is sent over the network without encryption (http)")
                }
                return DoctorFinding(check, .ok, "\(name): \(destination.kind.rawValue) at \(made.url.host ?? "")")
            } catch {
                return DoctorFinding(check, .failed, CommandFailure(ofStormy: error).message)
            }
        }
    }

    private static func isHere(_ host: String?) -> Bool {
        ["localhost", "::1", "[::1]"].contains(host ?? "") || host?.hasPrefix("127.") == true
    }

    /// Returns a finding about a secret file that cannot be used.
    private func secretFile(_ destination: Configuration.Destination, _ name: String) -> DoctorFinding? {
        for file in [destination.tokenFile, destination.passwordFile, destination.secretKeyFile].compactMap({ $0 }) {
            let secretFile = SecretFile(file)
            do { _ = try secretFile.read() } catch {
                let word = ShellWord.quoted(secretFile.path)
                return DoctorFinding(
                    check, .failed, "\(name): \(secretFile.describe(error))",
                    fix: error == .readableByOthers ? .init("chmod 600 \(word)", isSafe: true) : nil)
            }
        }
        return nil
    }
}

/// Examines the places, the daily check, and the results of the last checks.
private struct StoreExamination {
    let context: DoctorCommand.Context
    let folder: URL

    private var noPlace: DoctorFinding {
        DoctorFinding("places", .warning, "no place is configured. Add a place: \(context.command) place add NAME")
    }

    var findings: [DoctorFinding] {
        do {
            guard let store = try StormyStore.inspect(in: folder) else {
                return [noPlace] + lost
            }
            let places = try store.places()
            guard !places.isEmpty else {
                return [noPlace]
                    + schedule(store)
            }
            return [DoctorFinding("places", .ok, places.map(\.name).joined(separator: ", "))] + schedule(store)
                + weather(store, places) + warnings(store, places)
        } catch {
            let path = folder.appendingPathComponent(StormyStore.fileName).path
            let (from, to) = (ShellWord.quoted(path), ShellWord.quoted(path + ".damaged"))
            // The advice to move the store is given only for a damaged store. A separate row reports other causes.
            let isDamaged = if case .damaged? = error as? StormyStoreError { true } else { false }
            return [
                DoctorFinding(
                    "store", .failed, CommandFailure(ofStormy: error).message,
                    fix: isDamaged ? .init("mv \(from) \(to)") : nil)
            ]
        }
    }

    /// Findings about a daily check that is scheduled although the store does not contain the check.
    private var lost: [DoctorFinding] {
        guard context.pendingRequests?.contains(NoonSchedule.identifier) == true else { return [] }
        return [
            DoctorFinding(
                "daily-check", .failed, "\(folder.path) contains no places any more. Restore the folder, or add the places again"
            )
        ]
    }

    private func schedule(_ store: StormyStore) -> [DoctorFinding] {
        do {
            let check = try NoonSchedule(store: store).check
            guard let pending = context.pendingRequests else { return [] }
            let isPending = pending.contains(NoonSchedule.identifier)
            let fix = DoctorFinding.Fix("\(context.command) schedule")
            switch (check.isOn, isPending) {
            case (true, true): return [DoctorFinding("daily-check", .ok, "On, at \(check.time).")]
            case (true, false):
                return [
                    DoctorFinding(
                        "daily-check", .failed, "the daily check is on, but the agent has no request for it",
                        fix: .init(fix.command, isSafe: true))
                ]
            case (false, _):
                return [
                    DoctorFinding(
                        "daily-check", .warning, "the daily check is off, so Stormy does not check for storms", fix: fix)
                ]
            }
        } catch {
            return [DoctorFinding("daily-check", .failed, CommandFailure(ofStormy: error).message)]
        }
    }

    /// Returns findings about the official warnings, one row for each place.
    private func warnings(_ store: StormyStore, _ places: [Place]) -> [DoctorFinding] {
        places.map { place in
            do {
                return try WarningLines(of: place, in: store).finding
            } catch {
                return DoctorFinding("warnings", .failed, CommandFailure(ofStormy: error).message)
            }
        }
    }

    /// The number of seconds after which a daily check is overdue.
    private static let patience = 26 * 3600.0

    private func weather(_ store: StormyStore, _ places: [Place]) -> [DoctorFinding] {
        do {
            let checks = try store.checks()
            let isOn = try NoonSchedule(store: store).isEnabled
            let fix = DoctorFinding.Fix("\(context.command) check", isSafe: true)
            let rows = places.compactMap { place -> DoctorFinding? in
                guard let check = checks.first(where: { $0.place == place.id }) else { return nil }
                if let trouble = check.trouble {
                    return DoctorFinding("weather", .warning, "\(place.name) could not be checked: \(trouble)", fix: fix)
                }
                let age = AppRuntime.shared.now.timeIntervalSince(check.at)
                guard isOn, age > Self.patience else { return nil }
                return DoctorFinding(
                    "weather", .warning, "\(place.name) was last checked \(Output.relative(check.at))", fix: fix)
            }
            return rows.isEmpty ? [DoctorFinding("weather", .ok, "The last checks succeeded.")] : rows
        } catch {
            return [DoctorFinding("weather", .failed, CommandFailure(ofStormy: error).message)]
        }
    }
}
