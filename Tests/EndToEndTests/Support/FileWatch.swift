import CLinux
import Foundation

/// Waits for changes of a file to which another process appends. The type uses inotify to detect the changes.
enum FileWatch {
    /// Returns the text of the file as soon as `condition` is true. Returns `nil` after `seconds`.
    static func wait(_ path: String, seconds: Double = Home.patience, until condition: (String) -> Bool) -> String? {
        let descriptor = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        // The watch begins before the first read, so that no change is missed.
        inotify_add_watch(descriptor, path, UInt32(IN_MODIFY))
        let deadline = Date().addingTimeInterval(seconds)
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
            if condition(text) { return text }
            let left = deadline.timeIntervalSinceNow
            guard left > 0 else { return nil }
            var poller = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            poll(&poller, 1, Int32(left * 1000) + 1)
            while read(descriptor, &buffer, buffer.count) > 0 {}
        }
    }
}
