import BackgroundRuntime
import Foundation
import ProcessSupport
import StormyWeather
import UserNotifications

/// A notification that answers a person who just asked for something.
package enum PersonAnswer {
    /// `true` if a notification can be shown: there is a session bus here, or the agent knows of one. Elsewhere a notification would wait
    /// for ever, and the agent with it.
    package static var hasDesktop: Bool { AppRuntime.shared.knowsDesktop || isOnDesktop }

    /// `true` if there is a session bus here.
    package static var isOnDesktop: Bool {
        let environment = ThisProcess.environment
        if environment["DBUS_SESSION_BUS_ADDRESS"]?.isEmpty == false { return true }
        return environment["XDG_RUNTIME_DIR"].map { FileManager.default.fileExists(atPath: $0 + "/bus") } ?? false
    }

    /// Where the agent cannot be told, or none is there, the desktop is told without it.
    ///
    /// - Throws: why nobody can be told.
    package static func show(_ title: String, _ body: String) async throws {
        if case .failure = AgentStarter.findAgent(environment: ThisProcess.environment), showDirectly(title, body) {
            return
        }
        let content = UNMutableNotificationContent()
        (content.title, content.body) = (title, body)
        do {
            // Two at once are two.
            try await UNUserNotificationCenter.current().add(
                UNNotificationRequest(identifier: "note-\(UUID().uuidString)", content: content, trigger: nil))
        } catch {
            guard showDirectly(title, body) else { throw error }
        }
    }

    private static func showDirectly(_ title: String, _ body: String) -> Bool {
        if case .success(let path) = CompanionProgram.find("file-chooser"),
            CompanionProgram.trouble(starting: path, ["--tell", title, body]) == nil
        {
            return true
        }
        // Of an installation that is not whole.
        guard let other = CompanionProgram.findInPath("notify-send") else { return false }
        return CompanionProgram.trouble(starting: other, ["--", title, body]) == nil
    }
}

extension WeatherUnits {
    /// Of this process's person.
    package static var ofPerson: WeatherUnits { WeatherUnits(region: PersonLocale.measurementRegion()) }
}

/// Photos that a person chooses with the desktop's own chooser.
package enum PhotoChoice {
    /// Why there is no choice. The person's "no" is none.
    package enum Failure: Error, CustomStringConvertible {
        case noChooser
        case tooLate

        package var description: String {
            switch self {
            case .noChooser: "No file chooser could be opened. In a terminal: stormy upload FILE"
            case .tooLate: "No photo was chosen for ten minutes. In a terminal: stormy upload FILE"
            }
        }
    }

    /// Paths; `nil`: the person chose nothing.
    package static func ask() async throws -> [String]? {
        switch await FileChooser.choosePhotos() {
        case .chosen(let files): files.map(\.path)
        case .cancelled: nil
        case .tooLate: throw Failure.tooLate
        case .unavailable: throw Failure.noChooser
        }
    }
}
