import BackgroundLedger

/// The delivery that code of the app is handling: the end of a transfer, or a press of a notification.
///
/// If the handler begins a background transfer, the transaction that adds the transfer also records the delivery. So the app does
/// not begin the transfer again after a crash. An upload with a submission key does not record the delivery. After a crash, the
/// handler runs again, joins this upload and begins the missing uploads. A transfer that other code begins at the same time does
/// not record the delivery, because the handler may still have to begin other transfers.
package struct HandledDelivery: Sendable {
    /// The delivery of the running handler. Tasks that the handler creates inherit this value. The type of the value is not a
    /// function, because with Swift 6.3.1 and optimization, a program crashes if a task-local value is a function.
    @TaskLocal package static var current: HandledDelivery?

    /// A closure that records the delivery in the ledger.
    package let record: @Sendable (LedgerTransaction) throws -> Void

    package init(_ record: @escaping @Sendable (LedgerTransaction) throws -> Void) { self.record = record }
}
