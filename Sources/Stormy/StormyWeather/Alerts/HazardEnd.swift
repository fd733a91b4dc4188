import Foundation

/// The time at which a hazard ends, according to the warning message.
///
/// Sources of the rules: In CAP 1.2, `expires` is the end of the message. In the alert format of the US service, `ends` is the
/// end of the event, and is null if the end is open. In NWS directive 10-1703 (VTEC), an end of zeros is an open end.
struct HazardEnd: Equatable {
    /// The end of the hazard. If ``isOpen`` is `true`, this end is assumed.
    let until: Date
    /// `true` if the hazard lasts until its service ends the warning.
    let isOpen: Bool

    /// The assumed duration in seconds of a warning without an end.
    static let assumedDuration: TimeInterval = 12 * 3600

    /// - Parameters:
    ///   - ends: the end of the event.
    ///   - expires: the end of the message. For most services, the message ends at the same time as the event. If a message
    ///     expires before the hazard begins, this time is not used as the end of the hazard.
    ///   - sent: the time when the message was sent. If the message had expired when it was sent, the hazard is over. If the
    ///     hazard began before this time, an assumed end is counted from this time.
    ///   - eventCodes: VTEC codes such as "/O.NEW.KMFL.HU.W.1011.261128T1800Z-000000T0000Z/".
    init(from: Date, ends: Date?, expires: Date?, sent: Date? = nil, eventCodes: [String] = []) {
        if let ends {
            (until, isOpen) = (ends, false)
        } else if let expires {
            let isOver = sent.map { expires <= $0 } ?? false
            isOpen = !isOver && (expires <= from || eventCodes.contains { $0.contains("-000000T0000Z") })
            until = isOpen ? max(from, expires).addingTimeInterval(Self.assumedDuration) : expires
        } else {
            // CAP 1.2 does not require `expires`, so the end may be unknown.
            (until, isOpen) = (max(from, sent ?? from).addingTimeInterval(Self.assumedDuration), true)
        }
    }
}
