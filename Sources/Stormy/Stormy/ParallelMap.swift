import Foundation
import Synchronization

extension Array where Element: Sendable {
    /// Transforms the elements on several threads, for work that waits for the disk or for another program. Blocks until the work
    /// is complete.
    ///
    /// - Returns: The results in the order of the elements.
    func mapInParallel<Result: Sendable>(_ transform: @escaping @Sendable (Element) -> Result) -> [Result] {
        let results = Mutex<[Int: Result]>([:])
        let lanes = OperationQueue()
        lanes.maxConcurrentOperationCount = 2 * Swift.max(1, ProcessInfo.processInfo.activeProcessorCount)
        for (index, element) in enumerated() {
            lanes.addOperation {
                let result = transform(element)
                results.withLock { $0[index] = result }
            }
        }
        lanes.waitUntilAllOperationsAreFinished()
        return results.withLock { results in indices.map { results[$0]! } }
    }
}
