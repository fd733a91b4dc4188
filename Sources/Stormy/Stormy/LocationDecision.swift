/// The decision whether photos are sent with their location, and the setting that decides.
///
/// The first of these settings decides: an option of the command, the destination's `location`, `keep_location`. Without these settings the
/// location is removed.
package struct LocationDecision: Sendable, Equatable {
    /// The setting that decides.
    package enum Source: String, Sendable, CaseIterable {
        case option
        case destination
        /// `keep_location`, which holds for all destinations.
        case configuration
        case `default`
    }

    package let keeps: Bool
    package let source: Source
    private let destination: String

    /// - Parameters:
    ///   - option: The choice of `--keep-location` or `--remove-location`. `nil` without both.
    ///   - destination: The destination, with its choice.
    ///   - configuration: The choice of `keep_location`. `nil` without the line.
    package init(option: Bool?, destination: PhotoDestination, configuration: Bool?) {
        self.destination = destination.name
        switch (option, destination.keepsLocation, configuration) {
        case (let choice?, _, _): (keeps, source) = (choice, .option)
        case (nil, let choice?, _): (keeps, source) = (choice, .destination)
        case (nil, nil, let choice?): (keeps, source) = (choice, .configuration)
        case (nil, nil, nil): (keeps, source) = (false, .default)
        }
    }

    /// The choice of the command's option. `nil` if another setting decides.
    package var option: Bool? { source == .option ? keeps : nil }

    /// A line for the user.
    package var sentence: String {
        let reason =
            switch source {
            case .option: "because of --\(keeps ? "keep" : "remove")-location."
            case .destination: "because \(destination) has location = \"\(keeps ? "keep" : "remove")\"."
            case .configuration: "because the configuration has keep_location = \(keeps)."
            case .default: "by default. To choose, set \"location\" for \(destination) in the configuration."
            }
        return "The location is \(keeps ? "kept in" : "removed from") the photos \(reason)"
    }
}
