// Shows the desktop's file chooser, and prints the paths of the chosen photos. A zero byte ends each path. The program is
// separate, because Stormy itself does not need a library for the message bus. The program does not use Foundation, because
// Foundation is ten times larger than the program.
//
//     file-chooser TITLE
//     file-chooser --check
//     file-chooser --tell TITLE TEXT
//
// The exit code is 0 after a choice, and 1 if the user cancelled. The exit code is 2 if there is no file chooser, and the reason
// is printed. The option --check shows no window, and exits with 0 or 2. The option --tell shows a notification, and exits with
// 0. If the notification cannot be shown, the program prints the reason and exits with 2.
@preconcurrency import CLinux  // because its stdio has the same variables as Glibc
@preconcurrency import Glibc  // because stdin, stdout and stderr are variables in Glibc

/// Exits without the exit handlers of libraries, because threads of the bus library are still running.
func exitNow(_ code: Int32) -> Never {
    fflush(stdout)
    _exit(code)
}

func fail(_ why: String) -> Never {
    fputs("file-chooser: \(why)\n", stderr)
    exitNow(2)
}

// `CommandLine.arguments` is not used, because it is empty if the process cannot open a file at this moment.
var words: [String] = []
var next = clinux_arguments() + 1
while let word = next.pointee {
    words.append(String(cString: word))
    next += 1
}
if words.count == 3, words[0] == "--tell" {
    do {
        try DirectNotice.show(words[1], words[2])
        exitNow(0)
    } catch {
        fail(error.reason)
    }
}
switch words.first == "--check" ? FileChooserPortal.check() : FileChooserPortal.choosePhotos(title: words.first ?? "") {
case .chosen(let paths):
    for path in paths { print(path, terminator: "\0") }
    exitNow(0)
case .cancelled: exitNow(1)
case .unavailable(let why): fail(why)
}
