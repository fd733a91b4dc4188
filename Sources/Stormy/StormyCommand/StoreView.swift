import BackgroundCommands
import Stormy

extension StormyStore {
    /// Calls `show`, and calls it again after each change of this store and of the agent's database (ledger), until this process
    /// ends.
    func showAgainOnChanges(_ show: () throws -> Void) async throws {
        let (changes, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let looks = Task {
            do { for try await _ in self.contents() { continuation.yield() } } catch {
                Output.note("stormy: \(CommandFailure(ofStormy: error).message)")
            }
        }
        defer { looks.cancel() }
        try await LiveView.run(also: changes, show: show)
    }
}
