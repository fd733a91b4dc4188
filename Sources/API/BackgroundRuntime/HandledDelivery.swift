import BackgroundLedger

/// The event that code of the app is handling: a transfer has ended, or the user pressed a notification.
///
/// If the handler begins a background transfer, the transaction that adds the transfer also records that the event was delivered.
/// After a crash, the handler therefore does not run again, and the app does not begin the transfer twice. If the transfer is an
/// upload with a submission key, the event is not recorded. After a crash, the handler then runs again, joins the uploads that it
/// already began, and begins the others. If code outside the handler begins a transfer at the same time, the event is also not
/// recorded. The handler may still have to begin other transfers.
package struct HandledDelivery: Sendable {
    /// The event that the running handler received. Swift tasks that the handler creates inherit this value. The value is a
    /// struct and not a closure. If a task-local value is a closure, a program that Swift 6.3.1 compiled with optimization
    /// crashes.
    @TaskLocal package static var current: HandledDelivery?

    /// A closure that records in the ledger that the event was delivered.
    package let record: @Sendable (LedgerTransaction) throws -> Void

    package init(_ record: @escaping @Sendable (LedgerTransaction) throws -> Void) { self.record = record }
}
