// Lets a person choose photos with the desktop's own chooser, and prints their paths, each ended by a zero byte. A program of its
// own, as an app that only uploads has no other use for a bus. Without Foundation, which is ten times its size.
//
//     file-chooser TITLE
//     file-chooser --check
//     file-chooser --tell TITLE TEXT
//
// Ends with 0 after a choice, 1 if the person chose nothing, 2 if there is no such chooser (and says why). --check shows nothing: 0 or 2.
// --tell shows a notification: 0, or 2 and why not.
@preconcurrency import CLinux  // its stdio has the same variables
@preconcurrency import Glibc  // stdin, stdout and stderr are variables there

/// The bus has threads, beside which no exit handler of a library may run.
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
    if let why = DirectNotice.show(words[1], words[2]) { fail(why) }
    leave(0)
}
switch words.first == "--check" ? FileChooserPortal.look() : FileChooserPortal.choosePhotos(title: words.first ?? "") {
case .chosen(let paths):
    for path in paths { print(path, terminator: "\0") }
    leave(0)
case .cancelled: leave(1)
case .unavailable(let why): fail(why)
}
