// Cleans photos of their location, one after the other: a path, ended by a zero byte, comes in, what was removed goes out.
// It ends with its input. Whoever asks has to expect that a damaged file ends it earlier.
//
// A response is the fields of `PhotoCleaning.response`, each ended by a zero byte. An empty field ends the response.
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

// Not `CommandLine.arguments`, which is empty if the process may open no file at this moment.
guard let folder = clinux_arguments()[1], clinux_arguments()[2] == nil else {
    fputs("usage: photo-cleaner FOLDER\n", stderr)
    exit(64)
}
guard clinux_confine(folder) == 0 else {
    fputs("photo-cleaner cannot be confined: \(String(cString: strerror(errno)))\n", stderr)
    exit(71)
}

var line: UnsafeMutablePointer<CChar>?
var size = 0
while getdelim(&line, &size, 0, stdin) > 0, let line {
    for field in PhotoCleaning.response(about: line) + [""] { print(field, terminator: "\0") }
    fflush(stdout)
}
