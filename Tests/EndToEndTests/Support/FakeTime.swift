import Foundation

/// A program that runs by another clock: the `faketime` command.
enum FakeTime {
    /// Arguments of `sh`. The command shares memory under its process number, and one that is killed leaves that memory behind: without
    /// removing it, the next one of that number refuses to start.
    static func arguments(_ clock: String, _ program: String, _ words: [String]) -> [String] {
        let script = "rm -f /dev/shm/sem.faketime_sem_$$ /dev/shm/faketime_shm_$$; exec faketime -f \"$@\""
        return ["-c", script, "sh", clock, program] + words
    }
}
