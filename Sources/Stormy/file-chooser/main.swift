// Lets the user choose photos with the desktop's own chooser, and prints their paths, each ended by a zero byte. A separate
// program, because an app that only uploads has no other use for a bus. Without Foundation, which is ten times its size.
//
//     file-chooser TITLE
//     file-chooser --check
//     file-chooser --tell TITLE TEXT
//
// Exit code 0 after a choice, 1 if the user cancelled, 2 if there is no such chooser (with the reason). --check shows no window: 0 or 2.
// --tell shows a notification: 0, or 2 with the reason.
@preconcurrency import CLinux  // its stdio has the same variables
@preconcurrency import Glibc  // stdin, stdout and stderr are variables there

/// Without exit handlers of libraries: threads of the bus run beside them.
func leave(_ code: Int32) -> Never {
    fflush(stdout)
    _exit(code)
}

func fail(_ why: String) -> Never {
    fputs("file-chooser: \(why)\n", stderr)
    leave(2)
}

// Not `CommandLine.arguments`, which is empty if the process may open no file at this moment.
var words: [String] = []
var next = clinux_arguments() + 1
while let word = next.pointee {
    words.append(String(cString: word))
    next += 1
}
if words.count == 3, words[0] == "--tell" {
    do {
        try DirectNotice.show(words[1], words[2])
        leave(0)
    } catch {
        fail(error.reason)
    }
}
switch words.first == "--check" ? FileChooserPortal.check() : FileChooserPortal.choosePhotos(title: words.first ?? "") {
case .chosen(let paths):
    for path in paths { print(path, terminator: "\0") }
    leave(0)
case .cancelled: leave(1)
case .unavailable(let why): fail(why)
}
