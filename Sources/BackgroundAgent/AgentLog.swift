import Foundation

/// Lines for whoever asks later what the agent did. Never a header, never a query: they may hold secrets.
struct AgentLog {
    func note(_ text: String) {
        let line = Date().formatted(.iso8601) + " " + text + "\n"
        FileHandle.standardError.write(Data(line.utf8))
    }
}
