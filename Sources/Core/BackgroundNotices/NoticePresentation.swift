/// What of a notification its app wants shown, as a delegate said while a person ran the app.
package struct NoticePresentation: OptionSet, Codable, Sendable, Equatable {
    package let rawValue: Int

    package init(rawValue: Int) { self.rawValue = rawValue }

    package static let banner = NoticePresentation(rawValue: 1)
    package static let list = NoticePresentation(rawValue: 2)
    package static let sound = NoticePresentation(rawValue: 4)
    package static let badge = NoticePresentation(rawValue: 8)

    /// Nothing of it is on a screen.
    package var isNothing: Bool { isDisjoint(with: [.banner, .list]) }

    /// Seconds that a delegate has for its answer; then all of it is shown.
    package static let patience = 5.0
}
