import Foundation
import ProcessSupport

/// Runs the agent's program to examine this desktop, because the app's program does not contain the necessary libraries.
struct AgentProbe {
    struct Trouble: Error { let words: String }

    let agent: String
    let environment: [String: String]

    /// The time limit in seconds for the program. The program itself has shorter limits for each query.
    private static let patience = 30.0

    func query<Report: Decodable>(_ arguments: [String]) -> Result<Report, Trouble> {
        let end: ChildProcess.End
        do throws(ChildProcess.Failure) {
            end = try ChildProcess(path: agent, arguments: arguments, environment: environment)
                .run(within: Self.patience, outputLimit: 1 << 16)
        } catch {
            return .failure(Trouble(words: error.description))
        }
        // The result is one line of JSON. The method tries to decode each line, because libraries may print other lines to
        // standard output.
        for line in end.output.split(separator: "\n") {
            if let report = try? JSONDecoder().decode(Report.self, from: Data(line.utf8)) { return .success(report) }
        }
        if end.wasLate { return .failure(Trouble(words: "the program of the agent does not respond")) }
        return .failure(Trouble(words: end.output.split(separator: "\n").last.map(String.init) ?? "exit code \(end.code)"))
    }
}
