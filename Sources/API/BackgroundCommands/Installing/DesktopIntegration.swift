import ArgumentParser
import Foundation
import Synchronization

/// The description of an app for desktops and shells. The command `install` generates files from this description. Set
/// ``current`` before a command runs.
///
///     DesktopIntegration.current = DesktopIntegration(
///         summary: "Shows the tides", commands: Tool.self, icon: Data(PackageResources.Tide_svg))
///
/// Apple's API has no equivalent, because on Apple's systems the app's bundle contains this data.
public struct DesktopIntegration: Sendable {
    /// An entry in the menu of the app's icon.
    public struct Action: Sendable {
        /// The identifier of the action. The identifier consists of letters, digits and hyphens.
        public var identifier: String
        /// The name of the action that the menu shows.
        public var name: String
        /// The arguments with which the app's command is started.
        public var arguments: [String]

        /// Creates an action.
        public init(identifier: String, name: String, arguments: [String]) {
            (self.identifier, self.name, self.arguments) = (identifier, name, arguments)
        }
    }

    /// A summary in one line, without a full stop.
    public var summary: String
    /// The description for software centers. An empty line separates paragraphs.
    public var details: String
    /// The root command of the app, from which manual pages and completions are generated.
    public var commands: (any ParsableCommand.Type)?
    /// The icon as SVG, or `nil` for the desktop's standard icon of a program.
    public var icon: Data?
    /// The categories of the desktop menu specification, including one main category.
    public var categories: [String]
    /// The actions in the menu of the app's icon, in this order.
    public var actions: [Action]
    /// The kinds of files that the app opens.
    public var mimeTypes: [String]
    /// The arguments that precede the names of the files in the app's command when a user opens files with the app. If a user
    /// starts the app from a menu, no file names follow. If the value is `nil`, menus do not show the app.
    public var openArguments: [String]?
    /// The SPDX identifier of the license.
    public var license: String
    /// The identifier of the app in software centers, in reverse-DNS form (`org.example.Tide`), or `nil` for the app's
    /// identifier.
    public var componentIdentifier: String?

    /// Creates a description. The desktop does not show values that are omitted.
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

    /// The description of the app that runs in this process.
    public static var current: DesktopIntegration {
        get { chosen.withLock { $0 } }
        set { chosen.withLock { $0 = newValue } }
    }
}
