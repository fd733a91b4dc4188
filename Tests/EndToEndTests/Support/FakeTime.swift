import Foundation

/// Runs a program with another clock, by the `faketime` command.
enum FakeTime {
    /// Returns the arguments of `sh`. faketime names its shared memory by its process number, and a killed faketime leaves that
    /// memory behind. The script removes the memory, because otherwise the next process with this number would not start.
    static func arguments(_ clock: String, _ program: String, _ words: [String]) -> [String] {
        let script = "rm -f /dev/shm/sem.faketime_sem_$$ /dev/shm/faketime_shm_$$; exec faketime -f \"$@\""
        return ["-c", script, "sh", clock, program] + words
    }
}
