/// The parts of a notification that its app wants shown, as returned by the app's delegate while the user ran the app.
package struct NoticePresentation: OptionSet, Codable, Sendable, Equatable {
    package let rawValue: Int

    package init(rawValue: Int) { self.rawValue = rawValue }

    package static let banner = NoticePresentation(rawValue: 1)
    package static let list = NoticePresentation(rawValue: 2)
    package static let sound = NoticePresentation(rawValue: 4)
    package static let badge = NoticePresentation(rawValue: 8)

    /// `true` if no part is visible on the screen.
    package var isNothing: Bool { isDisjoint(with: [.banner, .list]) }

    /// Seconds that a delegate has to respond. After that, all parts are shown.
    package static let patience = 5.0
}
