import ProcessSupport

/// The identifiers for new tasks of a background session. This process reserves identifiers in the ledger, so that no other
/// process uses the same identifiers.
struct TaskIdentifiers {
    /// The number of identifiers in the next reservation. The number grows with each reservation, because fewer reservations need
    /// fewer commits.
    private var blockSize = 16
    private static let largestBlock = 1_024

    /// The identifiers that are reserved and not used yet.
    private var reserved = 0..<0
    /// The errors of failed reservations. If a reservation fails, the new task gets a negative identifier. The keys are these
    /// negative identifiers.
    private var refusals: [Int: StoreError] = [:]

    /// - Parameter reserve: a closure that reserves consecutive identifiers and returns the first identifier.
    /// - Returns: an identifier that no other task has. The identifier is negative if no identifier could be reserved. A task
    ///   with a negative identifier cannot be resumed.
    mutating func next(reserve: (Int) throws(StoreError) -> Int) -> Int {
        if reserved.isEmpty {
            do throws(StoreError) {
                let first = try reserve(blockSize)
                reserved = first..<first + blockSize
                blockSize = min(4 * blockSize, Self.largestBlock)
            } catch {
                let identifier = -1 - refusals.count
                refusals[identifier] = error
                return identifier
            }
        }
        return reserved.removeFirst()
    }

    /// Returns the reason why a task with this identifier cannot be resumed, or `nil` if the identifier was reserved.
    func refusal(of identifier: Int) -> StoreError? { refusals[identifier] }
}
