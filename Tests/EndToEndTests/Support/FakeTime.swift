import Foundation

/// Runs a program with another clock, by the `faketime` command.
enum FakeTime {
    /// Returns the arguments of `sh`. The name of faketime's shared memory contains the process number, and a killed faketime does
    /// not remove the memory. The script removes the memory, because otherwise the next process with this number would not start.
    static func arguments(_ clock: String, _ program: String, _ words: [String]) -> [String] {
        let script = "rm -f /dev/shm/sem.faketime_sem_$$ /dev/shm/faketime_shm_$$; exec faketime -f \"$@\""
        return ["-c", script, "sh", clock, program] + words
    }
}
