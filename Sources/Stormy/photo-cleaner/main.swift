// Cleans photos of their location, one after the other: a path, ended by a zero byte, comes in, what was removed goes out.
// It ends with its input. Whoever asks has to expect that a damaged file ends it earlier.
//
// A response is fields, each ended by a zero byte: "clean" and the names of the blocks that were overwritten; "unreadable" and why, if
// the format is unknown; "failed" and why; "fault" and why if the system failed. An empty field ends it.
//
// Its one argument is the folder in which the photos lie: whoever takes the parser over has no network and no other files of the person.
// Without Foundation, which is ten times its size.
@preconcurrency import CLinux  // its stdio has the same variables
@preconcurrency import Glibc  // stdin, stdout and stderr are variables there
import PhotoLocations

// What a crafted file may cost at most.
var memory = rlimit(rlim_cur: 2 << 30, rlim_max: 2 << 30)
setrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &memory)
var noCore = rlimit(rlim_cur: 0, rlim_max: 0)
setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &noCore)

// It may be started by a process that blocks signals: it can be ended all the same.
var none = sigset_t()
sigemptyset(&none)
sigprocmask(SIG_SETMASK, &none, nil)

guard CommandLine.arguments.count == 2 else {
    fputs("usage: photo-cleaner FOLDER\n", stderr)
    exit(64)
}
guard clinux_confine(CommandLine.arguments[1]) == 0 else {
    fputs("photo-cleaner cannot be confined: \(String(cString: strerror(errno)))\n", stderr)
    exit(71)
}

func answer(about path: String) -> [String] {
    // The photo is a regular file. Without O_NONBLOCK, opening a named pipe waits for a writer.
    let descriptor = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    guard descriptor >= 0 else { return ["fault", "its copy cannot be opened (\(String(cString: strerror(errno))))"] }
    defer { close(descriptor) }
    do throws(LocationFailure) {
        let report = try PhotoCleaning.clean(descriptor: descriptor)
        return ["clean"] + report.blocks + report.credentials
    } catch {
        if error == .unreadable { return ["fault", "\(error)"] }
        return [error == .unknownFormat ? "unreadable" : "failed", "\(error)"]
    }
}

var line: UnsafeMutablePointer<CChar>?
var size = 0
while getdelim(&line, &size, 0, stdin) > 0, let line {
    for field in answer(about: String(cString: line)) + [""] { print(field, terminator: "\0") }
    fflush(stdout)
}
