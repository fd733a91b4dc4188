import BackgroundNotices
import BackgroundScheduling
import Foundation
import Synchronization

/// The network and power conditions of a simulated host's desktop.
final class ScriptedConditions: ConditionsSource {
    private let value: Mutex<DesktopConditions>

    init(_ conditions: DesktopConditions) { value = Mutex(conditions) }

    var current: DesktopConditions { value.withLock { $0 } }

    /// Changes the conditions. Returns `true` if something changed.
    func set(_ change: (inout DesktopConditions) -> Void) -> Bool {
        value.withLock { value in
            let before = value
            change(&value)
            return value != before
        }
    }
}

/// A notification on the virtual screen.
public struct ShownNotification: Sendable, Equatable {
    /// The identifier that the app chose.
    public let identifier: String
    /// The title.
    public let title: String
    /// The text below the title.
    public let body: String
    /// The identifiers of its buttons.
    public let buttons: [String]
    /// The path of the picture; `nil` without a picture.
    public let picture: String?
    /// The sound that was played: the name of a theme sound or the path of a file; `nil` for no sound.
    public let sound: String?
    /// The number of times that the notification was shown or replaced on the screen, from 1.
    public internal(set) var showings: Int
    let serverID: UInt32
    /// The number of the server that showed the notification, counted from zero.
    package let serverNumber: Int
}

/// The notification server of a virtual desktop.
public final class VirtualNotificationServer: Presenter {
    /// The behaviour of the notification server.
    package enum Mood: Sendable, Equatable {
        case shows
        /// No notification server is running.
        case isGone
        case refuses
        /// The server refuses this number of notifications because there are too many, and then shows notifications again.
        case refusesNext(Int)
        /// The server accepts calls, but handles them only when it runs again.
        case isFrozen
    }

    private static let noServer = PresenterFailure.noServer("org.freedesktop.Notifications has no owner")

    private struct State {
        var mood = Mood.shows
        /// The error with which calls fail while no notification server is running.
        var absence = noServer
        var screen: [ShownNotification] = []
        /// All shown notifications, in order.
        var history: [ShownNotification] = []
        var nextID: UInt32 = 1
        /// Notifications that the server received and does not draw, because of do-not-disturb.
        var hidden: [ShownNotification] = []
        /// Whether do-not-disturb is on; `nil` if the server does not have do-not-disturb.
        var doNotDisturb: Bool?
        var badge = 0
        var pause = 0.0
        /// The notifications that a frozen server received.
        var heldBack: [(Notice, replacing: UInt32?, server: String?)] = []
        /// The numbers of shown notifications that the notification server has not yet confirmed.
        var unanswered: [UInt32] = []
        /// The number of notification servers that ran before the current server. Each server numbers its notifications from 1.
        var served = 0
        var server: String { "server \(served)" }
    }

    private let state = Mutex(State())
    private let clock: VirtualClock
    /// A lock that protects a function directly would wrap the function again at each access, without a limit.
    private struct Receiver {
        var tell: @Sendable (PresenterEvent) -> Void = { _ in }
    }

    private let receiver = Mutex(Receiver())

    init(clock: VirtualClock) { self.clock = clock }

    /// Connects the agent that receives the events. An agent that was connected before receives no more events.
    func connect(_ tell: @escaping @Sendable (PresenterEvent) -> Void) {
        receiver.withLock { $0.tell = tell }
        let (server, isQuiet) = state.withLock { state -> (String?, Bool?) in
            if case .isGone = state.mood { (nil, nil) } else { (state.server, state.doNotDisturb) }
        }
        if let server { tell(.serverIs(server)) }
        if let isQuiet { tell(.doNotDisturb(isQuiet)) }
    }

    private func send(_ event: PresenterEvent) { receiver.withLock { $0.tell }(event) }

    // MARK: The screen

    /// The notifications on the screen.
    public var shown: [ShownNotification] { state.withLock { $0.screen } }

    /// The number on the app's icon; 0 if no number is shown.
    public var badge: Int { state.withLock { $0.badge } }

    /// All notifications that were shown so far, including replaced and closed ones.
    public var history: [ShownNotification] { state.withLock { $0.history } }

    /// Presses a button, like a user.
    ///
    /// - Parameters:
    ///   - action: The identifier of a button; `nil` for the notification itself.
    ///   - identifier: The identifier of the notification.
    /// - Returns: `false` if the notification or the button is not on the screen.
    @discardableResult
    public func press(_ action: String? = nil, on identifier: String) -> Bool {
        guard let notice = shown.last(where: { $0.identifier == identifier }) else { return false }
        guard action == nil || notice.buttons.contains(action!) else { return false }
        send(
            .activated(
                identifier: identifier, serverID: notice.serverID, action: action ?? "default", activationToken: nil))
        close(notice, .dismissed)
        return true
    }

    /// Types a reply into the text field of a button and sends it, like a user.
    ///
    /// - Returns: `false` if the notification is not on the screen.
    @discardableResult
    public func reply(_ text: String, on identifier: String) -> Bool {
        guard let notice = shown.last(where: { $0.identifier == identifier }) else { return false }
        send(.replied(identifier: identifier, serverID: notice.serverID, text: text))
        close(notice, .dismissed)
        return true
    }

    /// Closes a notification, like a user. Returns `false` if the notification is not on the screen.
    @discardableResult
    public func dismiss(_ identifier: String) -> Bool {
        guard let notice = shown.last(where: { $0.identifier == identifier }) else { return false }
        close(notice, .dismissed)
        return true
    }

    private func close(_ notice: ShownNotification, _ reason: NoticeCloseReason) {
        state.withLock { state in
            state.screen.removeAll { $0.serverID == notice.serverID }
            state.hidden.removeAll { $0.serverID == notice.serverID }
        }
        send(.closed(identifier: notice.identifier, serverID: notice.serverID, reason))
    }

    // MARK: The server

    /// Removes the server and all shown notifications from the bus.
    public func vanish() { vanish(because: Self.noServer) }

    /// Removes the notification server and all shown notifications.
    ///
    /// - Parameter absence: The error with which later calls fail.
    package func vanish(because absence: PresenterFailure) {
        state.withLock { state in
            state.absence = absence
            // The next notification server is treated as a different server.
            if state.mood != .isGone { (state.served, state.nextID) = (state.served + 1, 1) }
            (state.mood, state.screen, state.hidden, state.heldBack) = (.isGone, [], [], [])
            // The user did not see notifications that the notification server had not confirmed.
            for number in state.unanswered {
                if let last = state.history.lastIndex(where: { $0.serverID == number }) { state.history.remove(at: last) }
            }
            state.unanswered = []
        }
        send(.serverVanished)
    }

    /// Starts a server on the bus.
    public func appear() {
        let (server, isQuiet) = state.withLock { state in
            (state.mood, state.heldBack) = (.shows, [])
            return (state.server, state.doNotDisturb)
        }
        send(.serverIs(server))
        if let isQuiet { send(.doNotDisturb(isQuiet)) }
        send(.serverAppeared)
    }

    /// Switches do-not-disturb on or off. As on Plasma, notifications that arrive during do-not-disturb are not drawn when it ends.
    package func setDoNotDisturb(_ isOn: Bool) {
        state.withLock { $0.doNotDisturb = isOn }
        send(.doNotDisturb(isOn))
    }

    /// Continues a frozen server, which then shows the notifications that it received.
    package func continueWork() { set(.shows) }

    /// Sets the reaction to notifications. A frozen server first handles the calls that it received, in their order.
    package func set(_ mood: Mood) {
        if mood != .isGone, state.withLock({ $0.mood == .isGone }) { appear() }
        let held = state.withLock { state in
            state.mood = mood
            if mood == .isFrozen { return [(Notice, replacing: UInt32?, server: String?)]() }
            defer { state.heldBack = [] }
            return state.heldBack
        }
        for (notice, number, server) in held { present(notice, replacing: number, of: server) }
    }

    /// Sets the delay of the server's responses, in seconds.
    package func answer(after seconds: Double) { state.withLock { $0.pause = seconds } }

    /// Removes all notifications and buttons, because their sender disconnected from the bus. Most desktops also remove the
    /// notifications of a disconnected sender.
    func senderLeft() { state.withLock { ($0.screen, $0.hidden) = ([], []) } }

    // MARK: Presenter

    /// Shows a notification. The agent calls this method. A test reads ``shown``.
    package func present(_ notice: Notice, replacing number: UInt32?, of server: String?) {
        let (answer, pause) = state.withLock { state -> (PresenterEvent, Double) in
            switch state.mood {
            case .isGone: return (.failed(identifier: notice.identifier, state.absence), state.pause)
            case .refuses: return (.failed(identifier: notice.identifier, .refused("not now")), state.pause)
            case .refusesNext(let count):
                state.mood = count > 1 ? .refusesNext(count - 1) : .shows
                return (.failed(identifier: notice.identifier, .refused("too many notifications in a short time")), state.pause)
            case .isFrozen:
                state.heldBack.append((notice, number, server))
                return (.failed(identifier: notice.identifier, .unanswered("nothing for 5 s")), 5)
            case .shows: break
            }
            // An earlier notification is found by its number. On servers that support tags, it is also found by its tag.
            let known = server == state.server ? number : nil
            let old = state.screen.firstIndex { $0.serverID == known || $0.identifier == notice.identifier }
            let given = old.map { state.screen[$0].serverID } ?? state.nextID
            let shown = ShownNotification(
                identifier: notice.identifier, title: notice.title, body: notice.body,
                buttons: notice.actions.map(\.key).filter { $0 != "default" },
                picture: notice.picture,
                sound: notice.isQuiet || notice.soundName == nil ? nil : notice.soundFile ?? notice.soundName,
                showings: (old.map { state.screen[$0].showings } ?? 0) + 1, serverID: given,
                serverNumber: state.served)
            if old == nil { state.nextID += 1 }
            state.unanswered.append(given)
            state.hidden.removeAll { $0.serverID == known || $0.identifier == notice.identifier }
            if state.doNotDisturb == true {
                if let old { state.screen.remove(at: old) }
                state.hidden.append(shown)
            } else {
                if let old { state.screen[old] = shown } else { state.screen.append(shown) }
                state.history.append(shown)
            }
            return (.presented(identifier: notice.identifier, serverID: given), state.pause)
        }
        // Only the agent that made the call receives the response, if that agent is still alive.
        let tell = receiver.withLock { $0.tell }
        clock.schedule(after: pause) { [self] in tell(stillTrue(answer)) }
    }

    /// Returns the response. If the server disconnected from the bus after the call, returns the error that the bus reports.
    private func stillTrue(_ answer: PresenterEvent) -> PresenterEvent {
        guard case .presented(let identifier, let number) = answer else { return answer }
        return state.withLock { state in
            guard let open = state.unanswered.firstIndex(of: number) else {
                return .failed(identifier: identifier, .noServer("the notification server disconnected before it responded"))
            }
            state.unanswered.remove(at: open)
            return answer
        }
    }

    /// Checks whether the server responds. The agent calls this method.
    package func query() {
        let answers = state.withLock { state in
            switch state.mood {
            case .shows, .refuses, .refusesNext: true
            case .isGone, .isFrozen: false
            }
        }
        let tell = receiver.withLock { $0.tell }
        if answers { clock.schedule(after: 0) { tell(.serverAnswers) } }
    }

    /// Does nothing. On most desktops, a new agent is notified if the user presses a button of a notification that an earlier
    /// agent showed. The agent calls this method.
    package func adoptNotification(identifier: String, serverID: UInt32, of server: String?) {}

    /// Sets the number on the app's icon. The agent calls this method.
    package func showBadge(_ count: Int, desktopEntry: String) { state.withLock { $0.badge = count } }

    /// Withdraws a notification for the app. The agent calls this method. ``dismiss(_:)`` simulates the action of a user.
    package func withdraw(identifier: String, serverID: UInt32, of server: String?) {
        let notice = state.withLock { state in
            server == state.server ? (state.screen + state.hidden).first { $0.serverID == serverID } : nil
        }
        if let notice { close(notice, .closedByCall) }
        send(.withdrawn(identifier: identifier, serverID: serverID))
    }
}
