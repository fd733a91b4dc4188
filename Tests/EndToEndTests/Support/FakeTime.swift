import Foundation

/// Runs a program with another clock. The command `faketime` sets the clock.
enum FakeTime {
    /// Returns the arguments of `sh`. faketime uses shared memory whose name contains the process number. If faketime is killed,
    /// this memory remains, and the next process with the same number would not start. The script therefore removes the memory.
    static func arguments(_ clock: String, _ program: String, _ words: [String]) -> [String] {
        let script = "rm -f /dev/shm/sem.faketime_sem_$$ /dev/shm/faketime_shm_$$; exec faketime -f \"$@\""
        return ["-c", script, "sh", clock, program] + words
    }
}
