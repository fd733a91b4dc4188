import BackgroundNotices
import BackgroundScheduling
import Foundation
import Synchronization

/// What a simulated host's desktop says of network and power.
final class ScriptedConditions: ConditionsSource {
    private let value: Mutex<DesktopConditions>

    init(_ conditions: DesktopConditions) { value = Mutex(conditions) }

    var current: DesktopConditions { value.withLock { $0 } }

    /// `true`: something changed.
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
    /// The app's own identifier.
    public let identifier: String
    /// The headline.
    public let title: String
    /// What stands below it.
    public let body: String
    /// The identifiers of its buttons.
    public let buttons: [String]
    /// The path of its picture; `nil`: it has none.
    public let picture: String?
    /// What was played: a sound of the desktop's theme by its name, or the path of a file; `nil`: nothing.
    public let sound: String?
    /// 1, and one more for each time that it was replaced on the screen.
    public internal(set) var showings: Int
    let serverID: UInt32
    /// Which server showed it, counted from none.
    package let serverNumber: Int
}

/// The notification server of a virtual desktop.
public final class VirtualNotificationServer: Presenter {
    /// What it does with what it is given.
    package enum Mood: Sendable, Equatable {
        case shows
        /// Nobody owns its name on the bus.
        case isGone
        case refuses
        /// Says that there were too many just now, so many times; then it shows.
        case refusesNext(Int)
        /// It is there, and takes what it is given when it goes on.
        case isFrozen
    }

    private struct State {
        var mood = Mood.shows
        var screen: [ShownNotification] = []
        /// Everything that was ever shown, in order.
        var history: [ShownNotification] = []
        var nextID: UInt32 = 1
        /// Notifications that the server has and does not draw, because of do-not-disturb.
        var hidden: [ShownNotification] = []
        /// `nil`: the server has no do-not-disturb.
        var doNotDisturb: Bool?
        var badge = 0
        var pause = 0.0
        /// What a frozen one was given.
        var heldBack: [(Notice, replacing: UInt32?, server: String?)] = []
        /// Numbers of showings that it has not answered yet.
        var unanswered: [UInt32] = []
        /// How many servers there were before; each counts its notifications from one.
        var served = 0
        var server: String { "server \(served)" }
    }

    private let state = Mutex(State())
    private let clock: VirtualClock
    private let tell = Mutex<@Sendable (PresenterEvent) -> Void>({ _ in })

    init(clock: VirtualClock) { self.clock = clock }

    /// The agent that hears; one that died hears no more.
    func connect(_ tell: @escaping @Sendable (PresenterEvent) -> Void) {
        self.tell.withLock { $0 = tell }
        let (server, isQuiet) = state.withLock { state -> (String?, Bool?) in
            if case .isGone = state.mood { (nil, nil) } else { (state.server, state.doNotDisturb) }
        }
        if let server { tell(.serverIs(server)) }
        if let isQuiet { tell(.doNotDisturb(isQuiet)) }
    }

    private func say(_ event: PresenterEvent) { tell.withLock { $0 }(event) }

    // MARK: The screen

    /// What stands on the screen.
    public var shown: [ShownNotification] { state.withLock { $0.screen } }

    /// The number on the app's icon; 0: none.
    public var badge: Int { state.withLock { $0.badge } }

    /// Everything that was shown so far, replaced and closed ones too.
    public var history: [ShownNotification] { state.withLock { $0.history } }

    /// The person presses a button.
    ///
    /// - Parameters:
    ///   - action: a button's identifier; `nil`: the notification itself.
    ///   - identifier: the notification's.
    /// - Returns: `false`: no such notification, or button, is on the screen.
    @discardableResult
    public func press(_ action: String? = nil, on identifier: String) -> Bool {
        guard let notice = shown.last(where: { $0.identifier == identifier }) else { return false }
        guard action == nil || notice.buttons.contains(action!) else { return false }
        say(
            .activated(
                identifier: identifier, serverID: notice.serverID, action: action ?? "default", activationToken: nil))
        close(notice, .dismissed)
        return true
    }

    /// The person types into the field of a button, and sends it.
    ///
    /// - Returns: `false`: no such notification is on the screen.
    @discardableResult
    public func reply(_ text: String, on identifier: String) -> Bool {
        guard let notice = shown.last(where: { $0.identifier == identifier }) else { return false }
        say(.replied(identifier: identifier, serverID: notice.serverID, text: text))
        close(notice, .dismissed)
        return true
    }

    /// The person closes a notification. `false`: it is not on the screen.
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
        say(.closed(identifier: notice.identifier, serverID: notice.serverID, reason))
    }

    // MARK: The server

    /// The server leaves the bus, and what it showed with it.
    public func vanish() {
        state.withLock { state in
            // Whoever comes is another.
            if state.mood != .isGone { (state.served, state.nextID) = (state.served + 1, 1) }
            (state.mood, state.screen, state.hidden, state.heldBack) = (.isGone, [], [], [])
            // What it had not answered nobody has seen.
            for number in state.unanswered {
                if let last = state.history.lastIndex(where: { $0.serverID == number }) { state.history.remove(at: last) }
            }
            state.unanswered = []
        }
        say(.serverVanished)
    }

    /// A server takes the name.
    public func appear() {
        let (server, isQuiet) = state.withLock { state in
            (state.mood, state.heldBack) = (.shows, [])
            return (state.server, state.doNotDisturb)
        }
        say(.serverIs(server))
        if let isQuiet { say(.doNotDisturb(isQuiet)) }
        say(.serverAppeared)
    }

    /// The user turns do-not-disturb on or off. As on Plasma, notifications that come while it is on are not drawn when it ends.
    package func setDoNotDisturb(_ isOn: Bool) {
        state.withLock { $0.doNotDisturb = isOn }
        say(.doNotDisturb(isOn))
    }

    /// A frozen one goes on, and shows what it was given meanwhile.
    package func goOn() { set(.shows) }

    /// Refuses, or again takes, what it is given. A frozen one takes first what it was given meanwhile: calls come in their order.
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

    /// Seconds until it answers.
    package func answer(after seconds: Double) { state.withLock { $0.pause = seconds } }

    /// Its sender left the bus: its notifications and buttons go, as on most desktops.
    func senderLeft() { state.withLock { ($0.screen, $0.hidden) = ([], []) } }

    // MARK: Presenter

    /// Shows a notification. The agent's way in; what a test asks is ``shown``.
    package func present(_ notice: Notice, replacing number: UInt32?, of server: String?) {
        let (answer, pause) = state.withLock { state -> (PresenterEvent, Double) in
            switch state.mood {
            case .isGone:
                return (
                    .failed(identifier: notice.identifier, .noServer("nobody owns org.freedesktop.Notifications")), state.pause
                )
            case .refuses: return (.failed(identifier: notice.identifier, .refused("not now")), state.pause)
            case .refusesNext(let count):
                state.mood = count > 1 ? .refusesNext(count - 1) : .shows
                return (.failed(identifier: notice.identifier, .refused("too many in a short time")), state.pause)
            case .isFrozen:
                state.heldBack.append((notice, number, server))
                return (.failed(identifier: notice.identifier, .unanswered("nothing for 5 s")), 5)
            case .shows: break
            }
            // By number, or by tag as servers do that know it.
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
        // To the agent that asked, if it lives by then.
        let tell = tell.withLock { $0 }
        clock.schedule(after: pause) { [self] in tell(stillTrue(answer)) }
    }

    /// A server that left meanwhile answers nothing: the bus says so.
    private func stillTrue(_ answer: PresenterEvent) -> PresenterEvent {
        guard case .presented(let identifier, let number) = answer else { return answer }
        return state.withLock { state in
            guard let open = state.unanswered.firstIndex(of: number) else {
                return .failed(identifier: identifier, .noServer("it left before it answered"))
            }
            state.unanswered.remove(at: open)
            return answer
        }
    }

    /// Whether it answers. The agent's way in.
    package func ask() {
        let answers = state.withLock { state in
            switch state.mood {
            case .shows, .refuses, .refusesNext: true
            case .isGone, .isFrozen: false
            }
        }
        let tell = tell.withLock { $0 }
        if answers { clock.schedule(after: 0) { tell(.serverAnswers) } }
    }

    /// Whoever listens hears its buttons, as on most desktops. The agent's way in.
    package func takeOver(identifier: String, serverID: UInt32, of server: String?) {}

    /// The number on the app's icon. The agent's way in.
    package func showBadge(_ count: Int, desktopEntry: String) { state.withLock { $0.badge = count } }

    /// Takes one back for the app. Not what a person does: that is ``dismiss(_:)``.
    package func withdraw(identifier: String, serverID: UInt32, of server: String?) {
        let notice = state.withLock { state in
            server == state.server ? (state.screen + state.hidden).first { $0.serverID == serverID } : nil
        }
        if let notice { close(notice, .closedByCall) }
        say(.withdrawn(identifier: identifier, serverID: serverID))
    }
}
