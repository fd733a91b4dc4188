import BackgroundRuntime
import Foundation
import ProcessSupport
import StormyWeather
import UserNotifications

/// A notification that responds to an action of the user.
package enum ActionNotification {
    /// Returns `true` if this process or the agent has a session bus, so that a notification can be shown. Without a session bus,
    /// the notification would wait forever, and the agent would not exit.
    package static var hasDesktop: Bool { AppRuntime.shared.knowsDesktop || isOnDesktop }

    /// `true` if this process has a session bus.
    package static var isOnDesktop: Bool {
        let environment = ThisProcess.environment
        if environment["DBUS_SESSION_BUS_ADDRESS"]?.isEmpty == false { return true }
        return environment["XDG_RUNTIME_DIR"].map { FileManager.default.fileExists(atPath: $0 + "/bus") } ?? false
    }

    /// Shows a notification through the agent, or directly on the desktop if the agent is not installed or does not respond.
    ///
    /// - Throws: the agent's error, if the agent cannot show the notification and this process cannot show it directly.
    package static func show(_ title: String, _ body: String) async throws {
        if case .failure = AgentStarter.findAgent(environment: ThisProcess.environment), showDirectly(title, body) {
            return
        }
        let content = UNMutableNotificationContent()
        (content.title, content.body) = (title, body)
        do {
            // Two notifications at the same time need different identifiers.
            try await UNUserNotificationCenter.current().add(
                UNNotificationRequest(identifier: "note-\(UUID.random().uuidString)", content: content, trigger: nil))
        } catch {
            guard showDirectly(title, body) else { throw error }
        }
    }

    /// Shows a notification with the first three sentences. If there are more sentences, the notification also shows the number
    /// of the other sentences.
    package static func show(_ title: String, sentences: [String]) async throws {
        let others = sentences.count > 3 ? ["and \(sentences.count - 3) more"] : []
        try await show(title, (sentences.prefix(3) + others).joined(separator: "\n"))
    }

    private static func showDirectly(_ title: String, _ body: String) -> Bool {
        if case .success(let path) = CompanionProgram.find("file-chooser"),
            CompanionProgram.trouble(starting: path, ["--tell", title, body]) == nil
        {
            return true
        }
        // If `file-chooser` is not installed, `notify-send` shows the notification.
        guard let other = CompanionProgram.findInPath("notify-send") else { return false }
        return CompanionProgram.trouble(starting: other, ["--", title, body]) == nil
    }
}

extension WeatherUnits {
    /// The weather units of the user who runs this process.
    package static var ofPerson: WeatherUnits { WeatherUnits(region: UserLocale.measurementRegion()) }
}

/// Photos that the user chooses in the desktop's file chooser.
package enum PhotoChoice {
    /// The reason why the user could not choose photos. If the user cancels the choice, this is not a failure.
    package enum Failure: Error, CustomStringConvertible {
        case noChooser
        case tooLate
        case ambiguous
        case remote(String)
        case notUTF8(String)

        package var description: String {
            switch self {
            case .noChooser: "No file chooser could be opened. Run in a terminal: stormy upload FILE"
            case .tooLate: "No photo was chosen for ten minutes. Run in a terminal: stormy upload FILE"
            case .ambiguous:
                "The path of a chosen file contains a line break. Choose the files one by one, or run in a terminal: stormy upload FILE"
            case .remote(let address):
                "No photo was queued, because \(address) is not on this computer. Copy the file to this computer first"
            case .notUTF8(let path):
                "No photo was queued, because the name of \(path) is not UTF-8. Rename the file first"
            }
        }
    }

    /// Returns the paths of the chosen photos. `nil` if the user chose nothing.
    ///
    /// - Parameter onOpen: A closure that receives the process of each file chooser that is opened.
    package static func choosePhotos(onOpen: @escaping @Sendable (ProcessIdentity) -> Void = { _ in }) async throws -> [String]? {
        switch await FileChooser.choosePhotos(onOpen: onOpen) {
        case .chosen(let paths): paths
        case .cancelled: nil
        case .tooLate: throw Failure.tooLate
        case .unavailable: throw Failure.noChooser
        case .ambiguous: throw Failure.ambiguous
        case .remote(let address): throw Failure.remote(address)
        case .notUTF8(let path): throw Failure.notUTF8(path)
        }
    }
}
