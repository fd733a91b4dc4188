import BackgroundLedger
@_exported import struct BackgroundRuntime.AppManifest
@_exported import enum BackgroundScheduling.LaunchKind
@_exported import enum BackgroundScheduling.MissedPolicy
@_exported import enum BackgroundScheduling.WallClockRule
@_exported import struct BackgroundScheduling.WallClockTime
import Foundation

/// A request for a later launch in the background. This class is abstract: submit a request of one of the subclasses.
open class BGTaskRequest: NSObject, NSCopying, @unchecked Sendable {  // because the scheduler copies each request
    /// The identifier of the task. The permitted list must contain this identifier.
    public let identifier: String

    /// The earliest date of the launch, or `nil` for no delay. The launch may begin later. A date in the past has the same effect
    /// as the current date.
    open var earliestBeginDate: Date?

    /// A rule on the user's clock, for example every day at 12:00. Beyond Apple.
    ///
    /// After each launch, the request stays pending with its next occurrence, even if the handler crashed before it could submit
    /// again. The request is planned again when the time zone or the clock changes. `earliestBeginDate` is not used.
    public var recurrence: WallClockRule?

    /// The delay in seconds between the time of the rule and the beginning of the request. The delay must be less than a day.
    /// Delays spread the load on services that many apps call at noon.
    public var recurrenceDelay: Double = 0

    /// The next occurrence of a pending request with a rule, as a date on the user's clock. Beyond Apple.
    public internal(set) var occurrence: Date?

    /// The policy for occurrences that were missed because the machine was off or asleep. Beyond Apple.
    public var missedOccurrences: MissedPolicy = .once

    /// A Boolean value that indicates whether the request is launched while the desktop's power saver is on. Set the value to
    /// `true` for work that uses almost no power and that the user expects. Beyond Apple: on iOS, Low Power Mode turns background
    /// refresh off.
    public var runsInLowPowerMode = false

    /// A Boolean value that indicates whether the machine wakes from sleep for this request. Waking requires `CAP_WAKE_ALARM`,
    /// logind, and a battery charge of at least 30 %.
    ///
    /// Differs from Apple: iOS decides when to wake. The machine sleeps again when the work is complete and no user is active,
    /// after 20 s at the latest. Work that is not complete by then continues when the machine wakes again. If the machine cannot be
    /// woken, the request runs after the sleep, like every other request. `why` and `doctor` report what is missing. The machine is
    /// not woken for a launch that is run late.
    public var wakesSystem = false

    init(identifier: String) {
        self.identifier = identifier
        super.init()
    }

    /// Returns an independent request of the same kind with the same content.
    open func copy(with zone: NSZone? = nil) -> Any {
        guard let copy = BGTaskRequest.make(from: record(now: Date(timeIntervalSinceReferenceDate: 0))) else {
            preconditionFailure("a request of an unknown kind")
        }
        copy.earliestBeginDate = earliestBeginDate
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

    /// Limits a date to the range that calendars support. A date that is not a number is not changed, and a request with such a
    /// date is refused when it is submitted.
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

/// A request for a short launch to refresh the app's content. The time limit is 30 s unless the app's settings change it.
open class BGAppRefreshTaskRequest: BGTaskRequest, @unchecked Sendable {  // because its base class is unchecked Sendable
    /// - Parameter identifier: an identifier from the permitted list.
    public override init(identifier: String) { super.init(identifier: identifier) }

    override var kind: LaunchKind { .appRefresh }
}

/// A request for a launch that takes minutes and can require conditions.
open class BGProcessingTaskRequest: BGTaskRequest, @unchecked Sendable {  // because its base class is unchecked Sendable
    /// A Boolean value that indicates whether the launch requires a network. If the network is lost while the launch runs, the
    /// time of the launch ends.
    ///
    /// The request then waits for the network and is launched again, unless the handler submitted a new request with this
    /// identifier or cancelled the identifier. Differs from Apple: iOS does not launch the request again.
    open var requiresNetworkConnectivity = false
    /// A Boolean value that indicates whether the launch requires external power. If external power is lost while the launch
    /// runs, the time of the launch ends and the request waits again, as described at ``requiresNetworkConnectivity``. A machine
    /// without a battery is always on external power.
    open var requiresExternalPower = false

    /// - Parameter identifier: an identifier from the permitted list.
    public override init(identifier: String) { super.init(identifier: identifier) }

    override var kind: LaunchKind { .processing }
}

/// A request for health research. Declared so that code compiles. Differs from Apple: the entitlement does not exist on Linux, so
/// the submission fails with ``BGTaskScheduler/Error/notPermitted``.
open class BGHealthResearchTaskRequest: BGProcessingTaskRequest, @unchecked Sendable {  // because the base class is
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
