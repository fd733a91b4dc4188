import ArgumentParser
import Foundation
import Synchronization

/// What a desktop and a shell show of an app: `install` writes it. Set ``current`` before a command runs.
///
///     DesktopIntegration.current = DesktopIntegration(
///         summary: "Tells of storms", commands: Tool.self, icon: Data(PackageResources.Tide_svg))
///
/// Beyond Apple, where the system takes all of this from the app's bundle.
public struct DesktopIntegration: Sendable {
    /// An entry in the menu of the app's icon.
    public struct Action: Sendable {
        /// Letters, digits and hyphens.
        public var identifier: String
        /// What the person reads.
        public var name: String
        /// Of the app's own command.
        public var arguments: [String]

        /// An action of the app's own.
        public init(identifier: String, name: String, arguments: [String]) {
            (self.identifier, self.name, self.arguments) = (identifier, name, arguments)
        }
    }

    /// One line, without a full stop.
    public var summary: String
    /// Paragraphs for software centres, separated by an empty line.
    public var details: String
    /// The app's own root command: its manual pages and its completions are made from it.
    public var commands: (any ParsableCommand.Type)?
    /// SVG. `nil`: the desktop's picture of a program.
    public var icon: Data?
    /// Of the desktop menu specification, one main category among them.
    public var categories: [String]
    /// In the menu of the app's icon, in this order.
    public var actions: [Action]
    /// Kinds of files that the app opens.
    public var mimeTypes: [String]
    /// Arguments before the files that a person opens with it, or before nothing where it is started from a menu. `nil`: a menu does not
    /// show the app.
    public var openArguments: [String]?
    /// SPDX.
    public var license: String
    /// Of the app in software centres, in reverse-DNS form (`org.example.Tide`). `nil`: the app's own identifier.
    public var componentIdentifier: String?

    /// Describes an app. What is left out the desktop does without.
    public init(
        summary: String = "", details: String = "", commands: (any ParsableCommand.Type)? = nil, icon: Data? = nil,
        categories: [String] = ["Utility"], actions: [Action] = [], mimeTypes: [String] = [], openArguments: [String]? = nil,
        license: String = "", componentIdentifier: String? = nil
    ) {
        (self.summary, self.details, self.commands, self.icon) = (summary, details, commands, icon)
        (self.categories, self.actions, self.mimeTypes) = (categories, actions, mimeTypes)
        (self.openArguments, self.license, self.componentIdentifier) = (openArguments, license, componentIdentifier)
    }

    private static let chosen = Mutex(DesktopIntegration())

    /// Of this process.
    public static var current: DesktopIntegration {
        get { chosen.withLock { $0 } }
        set { chosen.withLock { $0 = newValue } }
    }
}
