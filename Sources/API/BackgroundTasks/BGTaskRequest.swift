import BackgroundLedger
@_exported import struct BackgroundRuntime.AppManifest
@_exported import enum BackgroundScheduling.LaunchKind
@_exported import enum BackgroundScheduling.MissedPolicy
@_exported import enum BackgroundScheduling.WallClockRule
@_exported import struct BackgroundScheduling.WallClockTime
import Foundation

/// A request to be launched in the background later. Abstract: submit one of its subclasses.
open class BGTaskRequest: NSObject, NSCopying, @unchecked Sendable {  // because the scheduler copies it in and out
    /// The task's identifier, from the permitted list.
    public let identifier: String

    /// A lower bound for the launch; `nil`: no delay. Never a promise of promptness. In the past it means now.
    open var earliestBeginDate: Date?

    /// A rule on the person's clock, such as every day at 12:00. Beyond Apple.
    ///
    /// The request then stays pending after each launch with its next occurrence, also when the handler crashed
    /// before it could submit again; it is planned anew when the time zone or the clock changes.
    /// `earliestBeginDate` is not used.
    public var recurrence: WallClockRule?

    /// Seconds after the rule's moment at which this request begins, less than a day; kind to services that everybody asks
    /// at noon.
    public var recurrenceDelay: Double = 0

    /// Of a pending request with a rule: the moment on the person's clock that it stands for. Beyond Apple.
    public internal(set) var occurrence: Date?

    /// What becomes of occurrences that pass while the machine is off or asleep. Beyond Apple.
    public var missedOccurrences: MissedPolicy = .once

    /// Launch also while the person saves power: for work that costs next to nothing and is wanted. Beyond Apple, where
    /// Low Power Mode turns background refresh off.
    public var runsInLowPowerMode = false

    /// Wake the machine for it, where that may be: with `CAP_WAKE_ALARM`, logind, and at least 30 % of the battery.
    ///
    /// Differs from Apple, where the system wakes when it likes. The machine sleeps again when the work is done and nobody came, after 20 s at
    /// the latest; what is under way then goes on at the next wake. Where it cannot be woken the request runs as any other, after the
    /// sleep; `why` and `doctor` say what is missing. A launch that is made up for wakes nobody.
    public var wakesSystem = false

    init(identifier: String) {
        self.identifier = identifier
        super.init()
    }

    /// A request of the same kind and content, independent of this one.
    open func copy(with zone: NSZone? = nil) -> Any {
        guard let copy = BGTaskRequest.make(from: record(now: Date(timeIntervalSinceReferenceDate: 0))) else {
            preconditionFailure("a request of an unknown kind")
        }
        copy.earliestBeginDate = earliestBeginDate
        return copy
    }

    var kind: LaunchKind { preconditionFailure("BGTaskRequest is abstract: submit one of its subclasses") }

    /// - Parameter ledgerDate: turns a date of the app into a date of the ledger.
    func record(now: Date, _ ledgerDate: (Date) -> Date = { $0 }) -> RequestRecord {
        let processing = self as? BGProcessingTaskRequest
        return RequestRecord(
            identifier: identifier, kind: kind, earliestBegin: earliestBeginDate.map { ledgerDate(Self.withinCalendars($0)) },
            recurrence: recurrence, spread: recurrenceDelay, missed: missedOccurrences,
            requiresNetwork: processing?.requiresNetworkConnectivity ?? false,
            requiresExternalPower: processing?.requiresExternalPower ?? false, runsInLowPowerMode: runsInLowPowerMode,
            wakesSystem: wakesSystem, submittedAt: now)
    }

    /// Nobody's calendar goes further; what is no number stays so, and is refused when it is submitted.
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

/// A short launch to refresh the app's content: its budget is 30 s unless the app's settings say otherwise.
open class BGAppRefreshTaskRequest: BGTaskRequest, @unchecked Sendable {  // because its base is
    /// - Parameter identifier: from the permitted list.
    public override init(identifier: String) { super.init(identifier: identifier) }

    override var kind: LaunchKind { .appRefresh }
}

/// A launch of minutes, under conditions.
open class BGProcessingTaskRequest: BGTaskRequest, @unchecked Sendable {  // because its base is
    /// Launch only with a network; lost while it runs, the launch's time ends.
    ///
    /// The request then waits for the network and is launched again, unless the handler submitted or cancelled its identifier.
    /// Differs from Apple, where it is used up.
    open var requiresNetworkConnectivity = false
    /// Launch only on external power; lost while it runs, the launch's time ends, and the request waits for it again as
    /// ``requiresNetworkConnectivity`` says. A machine without a battery is always on external power.
    open var requiresExternalPower = false

    /// - Parameter identifier: from the permitted list.
    public override init(identifier: String) { super.init(identifier: identifier) }

    override var kind: LaunchKind { .processing }
}

/// Differs from Apple: nobody can be entitled to health research here, so submitting one fails with
/// ``BGTaskScheduler/Error/notPermitted``. It exists so that code which asks compiles.
open class BGHealthResearchTaskRequest: BGProcessingTaskRequest, @unchecked Sendable {  // because its base is
    /// The protection class of the files it needs.
    open var protectionTypeOfRequiredData: FileProtectionType = .complete

    /// A request of the same kind and content, independent of this one.
    open override func copy(with zone: NSZone? = nil) -> Any {
        let copy = BGHealthResearchTaskRequest(identifier: identifier)
        copy.requiresNetworkConnectivity = requiresNetworkConnectivity
        copy.requiresExternalPower = requiresExternalPower
        copy.earliestBeginDate = earliestBeginDate
        copy.protectionTypeOfRequiredData = protectionTypeOfRequiredData
        return copy
    }
}
