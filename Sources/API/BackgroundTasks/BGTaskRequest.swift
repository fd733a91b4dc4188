import BackgroundLedger
@_exported import struct BackgroundRuntime.AppManifest
@_exported import enum BackgroundScheduling.LaunchKind
@_exported import enum BackgroundScheduling.MissedPolicy
@_exported import enum BackgroundScheduling.WallClockRule
@_exported import struct BackgroundScheduling.WallClockTime
import Foundation

/// A request for a later launch in the background. The class is abstract, so submit an instance of a subclass.
open class BGTaskRequest: NSObject, NSCopying, @unchecked Sendable {  // Unchecked, because the scheduler copies each request
    /// The identifier of the task. The app's list of permitted identifiers must contain this identifier.
    public let identifier: String

    /// The earliest date of the launch, or `nil` for no delay. The launch may begin later. A date in the past has the same effect
    /// as the current date.
    open var earliestBeginDate: Date?

    /// The rule for the times of a repeating request on the user's clock, for example every day at 12:00. Apple's API has no
    /// equivalent.
    ///
    /// After each launch, the request stays pending with its next occurrence, even if the handler crashed before it could submit
    /// again. The request is planned again when the time zone or the clock changes. If the request has a rule,
    /// `earliestBeginDate` has no effect.
    public var recurrence: WallClockRule?

    /// The delay in seconds between the time that the rule gives and the start of the request. The delay must be less than a day.
    /// Different delays spread the load on a server that many apps call at noon.
    public var recurrenceDelay: Double = 0

    /// The next time at which a pending request with a rule is due. Apple's API has no equivalent.
    public internal(set) var occurrence: Date?

    /// The policy for occurrences that were missed because the machine was off or asleep. Apple's API has no equivalent.
    public var missedOccurrences: MissedPolicy = .once

    /// A Boolean value that indicates whether the agent launches the request while the desktop's power saver is on. Set the value
    /// to `true` for work that uses almost no power and that the user expects. On iOS, Low Power Mode turns background refresh
    /// off, and the app cannot change this.
    public var runsInLowPowerMode = false

    /// A Boolean value that indicates whether the machine wakes from sleep for this request. Waking requires `CAP_WAKE_ALARM`,
    /// logind, and a battery charge of at least 30 %.
    ///
    /// Differs from Apple: on iOS, only the system decides when a device wakes. The machine sleeps again when the work is
    /// complete and no user is active, after 20 s at the latest. Work that is not complete after 20 s continues when the machine
    /// wakes again. If the machine cannot be woken, the request runs after the sleep, like every other request. The commands
    /// `why` and `doctor` report why the machine cannot be woken. The machine is not woken for a launch that runs late.
    public var wakesSystem = false

    /// The folders whose changes also launch the request. The request must have a ``recurrence``. Apple's API has no equivalent.
    ///
    /// A change is a file that was added, removed, renamed or written. The launch begins when no change was reported for about
    /// 10 s, or after a minute of changes. The handler finds out itself what changed. A change is not lost if it happens while the
    /// handler is running, while the machine is off, or while a removable folder is not connected. Hidden files are ignored, and
    /// links are not followed.
    ///
    /// The kernel does not report the changes that other computers make in a network folder, so such a folder is read every 5
    /// minutes. The rule of the request limits the delay if a change is missed for another reason. Without systemd, or with a
    /// network folder, the agent keeps running.
    public var watchedFolders: [BGWatchedFolder] = []

    init(identifier: String) {
        self.identifier = identifier
        super.init()
    }

    /// Returns an independent request of the same kind with the same content.
    open func copy(with zone: NSZone? = nil) -> Any {
        guard let copy = BGTaskRequest.make(from: record(now: Date(timeIntervalSinceReferenceDate: 0))) else {
            preconditionFailure("the kind of the request is unknown")
        }
        copy.earliestBeginDate = earliestBeginDate
        copy.watchedFolders = watchedFolders
        return copy
    }

    var kind: LaunchKind { preconditionFailure("BGTaskRequest is abstract: submit one of its subclasses") }

    /// - Parameter ledgerDate: converts a date of the app to a date of the ledger.
    func record(now: Date, _ ledgerDate: (Date) -> Date = { $0 }) -> RequestRecord {
        let processing = self as? BGProcessingTaskRequest
        return RequestRecord(
            identifier: identifier, kind: kind, earliestBegin: earliestBeginDate.map { ledgerDate(Self.withinCalendars($0)) },
            recurrence: recurrence, spread: recurrenceDelay, missed: missedOccurrences,
            requiresNetwork: processing?.requiresNetworkConnectivity ?? false,
            requiresExternalPower: processing?.requiresExternalPower ?? false, runsInLowPowerMode: runsInLowPowerMode,
            wakesSystem: wakesSystem, submittedAt: now)
    }

    /// Limits a date to the range that calendars support. An invalid date (not a number) is not changed. The scheduler refuses a
    /// request with an invalid date when the app submits the request.
    private static func withinCalendars(_ date: Date) -> Date {
        date.timeIntervalSince1970.isNaN ? date : min(max(date, .distantPast), .distantFuture)
    }

    static func make(from record: RequestRecord) -> BGTaskRequest? {
        let request: BGTaskRequest
        switch record.kind {
        case .appRefresh: request = BGAppRefreshTaskRequest(identifier: record.identifier)
        case .processing:
            let processing = BGProcessingTaskRequest(identifier: record.identifier)
            processing.requiresNetworkConnectivity = record.requiresNetwork
            processing.requiresExternalPower = record.requiresExternalPower
            request = processing
        case .continuedProcessing: request = BGContinuedProcessingTaskRequest(record)
        case .urlSession, .notificationResponse, .significantTimeChange: return nil
        }
        request.earliestBeginDate = record.earliestBegin
        request.recurrence = record.recurrence
        request.recurrenceDelay = record.spread
        request.missedOccurrences = record.missed
        request.occurrence = record.occurrence
        request.runsInLowPowerMode = record.runsInLowPowerMode
        request.wakesSystem = record.wakesSystem
        return request
    }
}

/// A request for a short launch to refresh the app's content. The time limit is 30 s if the app's settings do not change it.
open class BGAppRefreshTaskRequest: BGTaskRequest, @unchecked Sendable {  // because the base class is unchecked Sendable
    /// - Parameter identifier: an identifier from the permitted list.
    public override init(identifier: String) { super.init(identifier: identifier) }

    override var kind: LaunchKind { .appRefresh }
}

/// A request for a launch that takes minutes and can require conditions.
open class BGProcessingTaskRequest: BGTaskRequest, @unchecked Sendable {  // because the base class is unchecked Sendable
    /// A Boolean value that indicates whether the launch requires a network. If the network is lost while the launch runs, the
    /// agent ends the launch.
    ///
    /// After a lost network, the request waits for the network, and the agent launches the request again. The agent does not
    /// launch the request again if the handler submitted a new request with this identifier, or cancelled the identifier. Differs
    /// from Apple: iOS does not launch the request again.
    open var requiresNetworkConnectivity = false
    /// A Boolean value that indicates whether the launch requires external power. If external power is lost while the launch
    /// runs, the agent ends the launch, and the request waits again (see ``requiresNetworkConnectivity``). A machine without a
    /// battery is always on external power.
    open var requiresExternalPower = false

    /// - Parameter identifier: an identifier from the permitted list.
    public override init(identifier: String) { super.init(identifier: identifier) }

    override var kind: LaunchKind { .processing }
}

/// A request for health research. The declaration exists only so that code for iOS compiles. Differs from Apple: Linux has no
/// entitlement for health research, so the submission fails with ``BGTaskScheduler/Error/notPermitted``.
open class BGHealthResearchTaskRequest: BGProcessingTaskRequest, @unchecked Sendable {  // Unchecked, because the base class is
    /// The protection class of the files that the task needs.
    open var protectionTypeOfRequiredData: FileProtectionType = .complete

    /// Returns an independent request of the same kind with the same content.
    open override func copy(with zone: NSZone? = nil) -> Any {
        let copy = BGHealthResearchTaskRequest(identifier: identifier)
        copy.requiresNetworkConnectivity = requiresNetworkConnectivity
        copy.requiresExternalPower = requiresExternalPower
        copy.earliestBeginDate = earliestBeginDate
        copy.protectionTypeOfRequiredData = protectionTypeOfRequiredData
        return copy
    }
}
