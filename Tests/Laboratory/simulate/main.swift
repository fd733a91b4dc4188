import Foundation
import Simulation

// The command `simulate [SEEDS] [--from SEED]` runs the given number of seeds on all cores. The command prints the seeds that
// broke a promise.
if getenv("SWIFT_DETERMINISTIC_HASHING") == nil {
    // The order of dictionaries must be equal in two runs of one seed.
    setenv("SWIFT_DETERMINISTIC_HASHING", "1", 1)
    var arguments: [UnsafeMutablePointer<CChar>?] = CommandLine.arguments.map { strdup($0) } + [nil]
    execv("/proc/self/exe", &arguments)
}
exit(await SimulationTool.run(Array(CommandLine.arguments.dropFirst())))
