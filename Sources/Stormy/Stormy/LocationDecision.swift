/// The decision whether photos are sent with their location, and the setting that made the decision.
///
/// The first of these settings that is set decides: an option of the command, the destination's `location`, `keep_location`. If
/// no setting is set, the location is removed.
package struct LocationDecision: Sendable, Equatable {
    /// The settings that can determine whether photos keep their location.
    package enum Source: String, Sendable, CaseIterable {
        case option
        case destination
        /// The key `keep_location` of the configuration, which applies to all destinations.
        case configuration
        case `default`
    }

    package let keeps: Bool
    package let source: Source
    private let destination: String

    /// - Parameters:
    ///   - option: `true` for `--keep-location`, and `false` for `--remove-location`. `nil` if the command has neither option.
    ///   - destination: The destination, with its setting `location`.
    ///   - configuration: The value of `keep_location`. `nil` if the configuration does not contain this key.
    package init(option: Bool?, destination: PhotoDestination, configuration: Bool?) {
        self.destination = destination.name
        switch (option, destination.keepsLocation, configuration) {
        case (let choice?, _, _): (keeps, source) = (choice, .option)
        case (nil, let choice?, _): (keeps, source) = (choice, .destination)
        case (nil, nil, let choice?): (keeps, source) = (choice, .configuration)
        case (nil, nil, nil): (keeps, source) = (false, .default)
        }
    }

    /// `true` if the command's option keeps the location, and `false` if the option removes it. `nil` if another setting decides.
    package var option: Bool? { source == .option ? keeps : nil }

    /// A sentence that explains the decision to the user.
    package var sentence: String {
        let choice = keeps ? "keep" : "remove"
        let effect = keeps ? "kept in" : "removed from"
        let reason =
            switch source {
            case .option: "because of --\(choice)-location."
            case .destination: "because the destination \(destination) has location = \"\(choice)\" in the configuration."
            case .configuration: "because the configuration has keep_location = \(keeps)."
            case .default: "by default. To choose, set \"location\" for \(destination) in the configuration."
            }
        return "The location is \(effect) the photos \(reason)"
    }
}
