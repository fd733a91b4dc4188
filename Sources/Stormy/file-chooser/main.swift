// Lets a person choose photos with the desktop's own chooser, and prints their paths, each ended by a zero byte. A program of its
// own, as an app that only uploads has no other use for a bus. Without Foundation, which is ten times its size.
//
//     file-chooser TITLE
//
// Ends with 0 after a choice, 1 if the person chose nothing, 2 if there is no such chooser (and says why).
@preconcurrency import Glibc  // stdin, stdout and stderr are variables there

switch FileChooserPortal.choosePhotos(title: CommandLine.arguments.dropFirst().first ?? "") {
case .chosen(let paths): for path in paths { print(path, terminator: "\0") }
case .cancelled: exit(1)
case .unavailable(let why):
    fputs("file-chooser: \(why)\n", stderr)
    exit(2)
}
