import BackgroundLedger
@_exported import struct BackgroundRuntime.AppManifest
@_exported import enum BackgroundScheduling.LaunchKind
@_exported import enum BackgroundScheduling.MissedPolicy
@_exported import enum BackgroundScheduling.WallClockRule
@_exported import struct BackgroundScheduling.WallClockTime
import Foundation

/// A request to be launched in the background later. Abstract: submit one of its subclasses.
open class BGTaskRequest: NSObject, NSCopying, @unchecked Sendable {  // because the scheduler copies it in and out
    /// The identifier of the task, from the permitted list.
    public let identifier: String

    /// The earliest date of the launch, or `nil` for no delay. The launch may be later. A date in the past means now.
    open var earliestBeginDate: Date?

    /// A rule on the user's clock, for example every day at 12:00. Beyond Apple.
    ///
    /// After each launch, the request stays pending with its next occurrence, even if the handler crashed before it could submit
    /// again. The request is planned again when the time zone or the clock changes. `earliestBeginDate` is not used.
    public var recurrence: WallClockRule?

    /// The number of seconds after the time of the rule at which this request begins, less than a day. A delay spreads the load
    /// on services that many apps call at noon.
    public var recurrenceDelay: Double = 0

    /// The occurrence on the user's clock that a pending request with a rule waits for. Beyond Apple.
    public internal(set) var occurrence: Date?

    /// The policy for occurrences that pass while the machine is off or asleep. Beyond Apple.
    public var missedOccurrences: MissedPolicy = .once

    /// A Boolean value that indicates whether the request is launched while the user saves power. Set it for work that costs
    /// almost nothing and that the user expects. Beyond Apple, where Low Power Mode turns background refresh off.
    public var runsInLowPowerMode = false

    /// A Boolean value that indicates whether the machine wakes from sleep for this request. Waking requires `CAP_WAKE_ALARM`,
    /// logind, and a battery charge of at least 30 %.
    ///
    /// Differs from Apple, where the system decides when to wake. The machine goes back to sleep when the work is complete and no
    /// user is active, after 20 s at the latest. Work that is still under way then continues at the next wake. If the machine
    /// cannot be woken, the request runs after the sleep, like every other request. `why` and `doctor` report what is missing. A
    /// launch that is run late does not wake the machine.
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

    /// Limits a date to the range that calendars support. A date that is not a number stays as it is, and is refused when it is
    /// submitted.
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
open class BGAppRefreshTaskRequest: BGTaskRequest, @unchecked Sendable {  // because its base is
    /// - Parameter identifier: an identifier from the permitted list.
    public override init(identifier: String) { super.init(identifier: identifier) }

    override var kind: LaunchKind { .appRefresh }
}

/// A request for a launch that takes minutes and can require conditions.
open class BGProcessingTaskRequest: BGTaskRequest, @unchecked Sendable {  // because its base is
    /// A Boolean value that indicates whether the launch requires a network. If the network is lost while the launch runs, the
    /// time of the launch ends.
    ///
    /// The request then waits for the network and is launched again, unless the handler submitted or cancelled its identifier.
    /// Differs from Apple, where the request is used up.
    open var requiresNetworkConnectivity = false
    /// A Boolean value that indicates whether the launch requires external power. If external power is lost while the launch
    /// runs, the time of the launch ends and the request waits again, as described at ``requiresNetworkConnectivity``. A machine
    /// without a battery is always on external power.
    open var requiresExternalPower = false

    /// - Parameter identifier: an identifier from the permitted list.
    public override init(identifier: String) { super.init(identifier: identifier) }

    override var kind: LaunchKind { .processing }
}

/// A request for health research. Differs from Apple: the entitlement does not exist here, so the submission fails with
/// ``BGTaskScheduler/Error/notPermitted``. The class exists so that code which uses it compiles.
open class BGHealthResearchTaskRequest: BGProcessingTaskRequest, @unchecked Sendable {  // because its base is
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
