/// The parts of a notification that are shown. The app's delegate chose these parts while the app was running.
package struct NoticePresentation: OptionSet, Codable, Sendable, Equatable {
    package let rawValue: Int

    package init(rawValue: Int) { self.rawValue = rawValue }

    package static let banner = NoticePresentation(rawValue: 1)
    package static let list = NoticePresentation(rawValue: 2)
    package static let sound = NoticePresentation(rawValue: 4)
    package static let badge = NoticePresentation(rawValue: 8)

    /// `true` if no part is visible on the screen.
    package var isNothing: Bool { isDisjoint(with: [.banner, .list]) }

    /// The number of seconds in which a delegate has to respond. If the delegate does not respond in time, all parts are shown.
    package static let patience = 5.0
}
