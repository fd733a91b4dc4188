// Removes the location from photos, one after the other. A request is a path that ends with a zero byte. A response lists the
// removed blocks. The program ends when its input ends. A damaged file may crash the program earlier, and the caller must handle
// this.
//
// A response consists of the fields of `PhotoCleaning.response`. A zero byte ends each field, and an empty field ends the
// response.
//
// The only argument is the folder of the photos. The program has no network and no access to other files of the user, because a
// crafted file may compromise the parser. The program does not use Foundation, because Foundation is ten times larger than the
// program.
@preconcurrency import CLinux  // because its stdio has the same variables as Glibc
@preconcurrency import Glibc  // because stdin, stdout and stderr are variables in Glibc
import PhotoLocations

// Limits the memory that a crafted file can use.
var memory = rlimit(rlim_cur: 2 << 30, rlim_max: 2 << 30)
setrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &memory)
var noCore = rlimit(rlim_cur: 0, rlim_max: 0)
setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &noCore)

// The parent process may block signals. The signals are unblocked, so that this process can be terminated.
var none = sigset_t()
sigemptyset(&none)
sigprocmask(SIG_SETMASK, &none, nil)

// `CommandLine.arguments` is not used, because it is empty if the process cannot open a file at this moment.
guard let folder = clinux_arguments()[1], clinux_arguments()[2] == nil else {
    fputs("usage: photo-cleaner FOLDER\n", stderr)
    exit(64)
}
// If the access of the program cannot be limited, the program does not read photos. The reason may be temporary, for example too
// many open files.
let trouble = clinux_confine(folder) == 0 ? nil : "photo-cleaner cannot be confined: \(String(cString: strerror(errno)))"

var line: UnsafeMutablePointer<CChar>?
var size = 0
while getdelim(&line, &size, 0, stdin) > 0, let line {
    for field in (trouble.map { ["fault", $0] } ?? PhotoCleaning.response(about: line)) + [""] { print(field, terminator: "\0") }
    fflush(stdout)
}
