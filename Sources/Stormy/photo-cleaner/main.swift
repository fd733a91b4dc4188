// Cleans photos of their location, one after the other: a path as a JSON string per line comes in, what was removed goes out.
// It ends with its input. Whoever asks has to expect that a damaged file ends it earlier.
//
// Its one argument is the folder in which the photos lie: whoever takes the parser over has no network and no other files of the person.
import CLinux
import Foundation
import PhotoMetadata

struct Answer: Encodable {
    var removed: [String] = []
    var trouble: String?
    /// Nothing in it could be looked at.
    var isUnreadable = false
}

// What a crafted file may cost at most.
var memory = rlimit(rlim_cur: 2 << 30, rlim_max: 2 << 30)
setrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &memory)
var noCore = rlimit(rlim_cur: 0, rlim_max: 0)
setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &noCore)

// It may be started by a process that blocks signals: it can be ended all the same.
var none = sigset_t()
sigemptyset(&none)
sigprocmask(SIG_SETMASK, &none, nil)

LocationRemoval.start()
guard CommandLine.arguments.count == 2 else {
    FileHandle.standardError.write(Data("usage: photo-cleaner FOLDER\n".utf8))
    exit(64)
}
guard clinux_confine(CommandLine.arguments[1]) == 0 else {
    FileHandle.standardError.write(Data("photo-cleaner cannot be confined: \(String(cString: strerror(errno)))\n".utf8))
    exit(71)
}
while let line = readLine() {
    var answer = Answer()
    do {
        let path = try JSONDecoder().decode(String.self, from: Data(line.utf8))
        answer.removed = try LocationRemoval.clean(path)
    } catch {
        answer.trouble = "\(error)"
        if case .unreadable = error as? LocationRemovalError { answer.isUnreadable = true }
    }
    var text = try JSONEncoder().encode(answer)
    text.append(0x0A)
    try FileHandle.standardOutput.write(contentsOf: text)
}
