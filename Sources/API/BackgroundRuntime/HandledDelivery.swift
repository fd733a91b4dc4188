import BackgroundLedger

/// The delivery that code of the app handles now: the end of a transfer, or a press of a notification.
///
/// A background transfer that this code begins records the delivery in its own transaction. An app that crashes afterwards does
/// not begin the transfer again. An upload with a submission key does not record the delivery: the handler runs again, joins this
/// upload and begins the uploads that it had not begun. A transfer that other code begins at the same time does not record the
/// delivery, because the handler of this delivery may still have to begin transfers.
package struct HandledDelivery: Sendable {
    /// The delivery of the running handler. Tasks that the handler creates inherit this value. The value is not a closure,
    /// because Swift 6.3.1 with optimization crashes if the type of a task-local value is a function.
    @TaskLocal package static var current: HandledDelivery?

    /// Records the delivery.
    package let record: @Sendable (LedgerTransaction) throws -> Void

    package init(_ record: @escaping @Sendable (LedgerTransaction) throws -> Void) { self.record = record }
}
