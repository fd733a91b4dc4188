import Foundation

@testable import StormyWeather

/// One step of a generated sequence.
enum StormStep: Sendable {
    enum Data: Sendable {
        /// No service could be reached.
        case none
        case fresh
        /// The forecast was fetched five hours ago.
        case old
        /// One hour of the storm has no value.
        case gap
        /// The forecast ends in the middle of the storm.
        case short
        /// The forecast comes from a service without gusts.
        case noGusts
    }

    /// A check. If `crash` has a value, the process dies after this number of commands, before it stores the ``StormLife``.
    case check(Data, gusts: Double, from: Int, hours: Int, crash: Int?)
    /// A warning that replaces the valid warning of this hazard.
    case warn(CAPSeverity, hours: Int, AlertHazard)
    case cancelWarning
    case dismiss, snooze, providePhoto
    case serverLeaves, serverReturns
    /// The user ends all background work.
    case quit
    case clockJumps, clockReturns

    static func random(_ random: inout SplitMix) -> StormStep {
        switch Int.random(in: 0..<40, using: &random) {
        case 0..<24:
            let data: Data =
                switch Int.random(in: 0..<12, using: &random) {
                case 0: .none
                case 1: .old
                case 2: .gap
                case 3: .short
                case 4: .noGusts
                default: .fresh
                }
            return .check(
                data, gusts: [20, 20, 40, 58, 62, 70, 76, 90, 110, 150].randomElement(using: &random)!,
                from: Int.random(in: -4...2, using: &random), hours: Int.random(in: 2...4, using: &random),
                crash: Int.random(in: 0..<6, using: &random) == 0 ? Int.random(in: 0...2, using: &random) : nil)
        case 24..<27:
            return .warn(
                [.moderate, .severe, .severe, .extreme].randomElement(using: &random)!,
                hours: Int.random(in: 2...5, using: &random),
                [.wind, .wind, .flood].randomElement(using: &random)!)
        case 27..<29: return .cancelWarning
        case 29..<32: return .dismiss
        case 32..<34: return .snooze
        case 34: return .providePhoto
        case 35: return .serverLeaves
        case 36, 37: return .serverReturns
        case 38: return Bool.random(using: &random) ? .quit : .serverReturns
        default: return Bool.random(using: &random) ? .clockJumps : .clockReturns
        }
    }
}

struct SplitMix: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

/// A valid warning, as its service lists it.
struct StandingWarning: Sendable {
    let identifier: String
    let severity: CAPSeverity
    let hazard: AlertHazard
    let from: Date
    let until: Date
}

/// The input of a check. The judge uses only inputs and ``StormScreen``.
struct StormInput {
    var now: Date
    var gusts: [(start: Date, kmh: Double?)]?
    var fetchedAt: Date
    var warnings: [StandingWarning]
    /// `true` if the process did not die during the check.
    var isComplete: Bool
}

/// A notification server, and the user who sees its notifications.
struct StormScreen {
    enum Kind: Equatable { case storm, calledOff }

    /// The content of a notification.
    struct Text: Equatable {
        var kind: Kind
        var level: Int
        var isWarned: Bool
        /// The level of each official warning in the text, by hazard.
        var hazards: [AlertHazard: Int] = [:]
        var peak: Double
        var until: Date
    }

    /// A change that the user could notice.
    enum Change: Equatable {
        case alerted(Text)
        case appearedSilently(Text)
        case changed(Text)
        case removed
    }

    enum State { case waiting, visible, dismissed, ended, withdrawn }

    struct Row {
        var text: Text
        var state: State
        var isLoud: Bool
        var wasSeen = false
        var memory: StormLife.Memory
    }

    private(set) var row: Row?
    private(set) var snoozedUntil: Date?
    /// Whether the storm's photo request has a photo; `nil` without a photo request.
    private(set) var photo: Bool?
    private(set) var trace: [Change] = []
    var hasServer = true { didSet { if hasServer { showWaiting() } } }

    var visible: Text? { row?.state == .visible ? row?.text : nil }

    private mutating func showWaiting() {
        guard var shown = row, shown.state == .waiting, hasServer else { return }
        shown.state = .visible
        shown.wasSeen = true
        row = shown
        trace.append(shown.isLoud ? .alerted(shown.text) : .appearedSilently(shown.text))
    }

    mutating func add(_ text: Text, isLoud: Bool, _ memory: StormLife.Memory) {
        // Equal content alerts only once.
        if let row, row.memory == memory, row.text == text, row.state != .withdrawn { return }
        snoozedUntil = nil
        row = Row(text: text, state: .waiting, isLoud: isLoud, memory: memory)
        showWaiting()
    }

    mutating func change(_ text: Text, _ memory: StormLife.Memory, isLoud: Bool = false) {
        guard var changed = row, changed.state == .visible || changed.state == .waiting || snoozedUntil != nil else { return }
        guard changed.text != text || changed.memory != memory else { return }
        (changed.text, changed.memory) = (text, memory)
        if changed.state == .visible { trace.append(isLoud ? .alerted(text) : .changed(text)) }
        if text.kind == .calledOff, changed.state == .waiting { changed.isLoud = isLoud }
        row = changed
    }

    mutating func withdraw() {
        snoozedUntil = nil
        guard row != nil, row?.state != .withdrawn else { return }
        if row?.state == .visible { trace.append(.removed) }
        row?.state = .withdrawn
    }

    mutating func openPhotoRequest() { if photo == nil { photo = false } }
    mutating func closePhotoRequest() { if photo == false { photo = nil } }
    mutating func closeAnyPhotoRequest() { photo = nil }
    mutating func providePhoto() { if photo == false { photo = true } }

    mutating func dismiss() { if row?.state == .visible { row?.state = .dismissed } }

    mutating func snooze(until date: Date) {
        guard row?.state == .visible, row?.text.kind == .storm else { return }
        row?.state = .dismissed
        snoozedUntil = date
    }

    /// Lets time pass. A snoozed notification is shown again. If the end time of a notification has passed, the notification
    /// leaves the screen. If the clock was wrong, the notification returns.
    mutating func pass(to now: Date) {
        if let due = snoozedUntil, due <= now {
            row?.state = .visible
            snoozedUntil = nil
        }
        if row?.state == .visible, let until = row?.text.until, until <= now { row?.state = .ended }
        if row?.state == .ended, let until = row?.text.until, until > now { row?.state = .visible }
    }

    var answer: StormNotificationState {
        guard let row else { return StormNotificationState(.none, hasPhoto: photo == true) }
        let state: StormNotificationState.State =
            switch row.state {
            case .waiting: .waiting
            case .visible: .visible
            case .dismissed: snoozedUntil == nil ? .dismissed : .snoozed
            case .ended: .ended
            case .withdrawn: row.wasSeen ? .withdrawn : .unseen
            }
        return StormNotificationState(state, memory: row.memory, hasPhoto: photo == true)
    }
}
