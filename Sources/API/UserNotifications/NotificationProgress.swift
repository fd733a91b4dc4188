import BackgroundLedger

/// The state of a notification, for the app that added the notification.
package enum NotificationProgress: Sendable {
    /// The agent has not shown the notification yet, or the desktop's do-not-disturb mode hides it.
    case waiting
    /// The notification is on the screen, or a summary on the screen contains it.
    case visible
    /// The notification server removed the notification from the screen before the user responded.
    case left
    /// The user closed the notification or pressed it.
    case dismissed
    /// The notification was removed from the screen at its expiration date.
    case ended
    /// The notification was never shown, because it was withdrawn or its category was switched off.
    case unseen
    /// The notification was withdrawn after it was shown.
    case withdrawn

    init(_ record: NotificationRecord) {
        let life = record.life
        self =
            if life.isUnreported || life.isHidden { .waiting } else if life.isStillShown { .visible } else if life.isUnanswered {
                .left
            } else if life
                .phase == .closed
            { .dismissed } else if record.deliveredAt == nil { .unseen } else { life.phase == .over ? .ended : .withdrawn }
    }
}
