// Lets a person choose photos with the desktop's own chooser, and prints their paths, each ended by a zero byte. A program of its
// own, as an app that only uploads has no other use for a bus. Without Foundation, which is ten times its size.
//
//     file-chooser TITLE
//     file-chooser --check
//
// Ends with 0 after a choice, 1 if the person chose nothing, 2 if there is no such chooser (and says why). --check shows nothing: 0 or 2.
@preconcurrency import Glibc  // stdin, stdout and stderr are variables there

let word = CommandLine.arguments.dropFirst().first ?? ""
switch word == "--check" ? FileChooserPortal.look() : FileChooserPortal.choosePhotos(title: word) {
case .chosen(let paths): for path in paths { print(path, terminator: "\0") }
case .cancelled: exit(1)
case .unavailable(let why):
    fputs("file-chooser: \(why)\n", stderr)
    exit(2)
}
