import ProcessSupport

/// What the app begins (a transfer, a request, a notification) until it is durable, or refused. A process does not leave before.
package final class Beginnings: Sendable {
    package let work = WorkUnderWay()

    package init() {}

    /// Those of the launch that the current work is part of, or of this process.
    package static var current: WorkUnderWay { LaunchContext.current?.beginnings ?? AppRuntime.shared.part { Beginnings() }.work }
}

extension AppRuntime {
    /// Ends a process that a user started.
    package static func leaveWithoutLoss() {
        whenNothingIsLost(.ofThisProcess, Beginnings.current) { ProcessExit.leave(0) }
    }

    /// Calls an action when the app was told to the end what it is being told, and what the app began is durable.
    static func whenNothingIsLost(
        _ deliveries: DeliveryGate, _ beginnings: WorkUnderWay, _ action: @escaping @Sendable () -> Void
    ) {
        deliveries.close {
            beginnings.whenNone {
                if let error = DurableWrites.shared.settle() { AppRuntime.shared.report("not recorded: \(error)") }
                // A commit that has begun is finished.
                (try? AppRuntime.shared.ledger())?.waitForWrites()
                action()
            }
        }
    }
}
