import ProcessSupport

/// Identifiers for new tasks of a background session. The ledger reserves the identifiers, so that no other process uses the same
/// identifiers.
struct TaskIdentifiers {
    /// The number of identifiers to reserve next. The number grows, because each reservation is a commit.
    private var blockSize = 16
    private static let largestBlock = 1_024

    /// The identifiers that are reserved and not used yet.
    private var reserved = 0..<0
    /// The reasons why the ledger reserved no identifiers, by the identifiers that were used instead.
    private var refusals: [Int: StoreError] = [:]

    /// - Parameter reserve: reserves consecutive identifiers and returns the first of these identifiers.
    /// - Returns: an identifier that no other task has. The identifier is negative if no identifier could be reserved. A task with
    ///   a negative identifier cannot be resumed.
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

    /// Returns the reason why a task with this identifier cannot be resumed; `nil` if the identifier was reserved.
    func refusal(of identifier: Int) -> StoreError? { refusals[identifier] }
}
