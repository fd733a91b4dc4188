import Foundation
import Simulation

// `simulate [SEEDS] [--from SEED]` runs the given number of seeds on all cores, and prints the seeds that broke a promise.
if getenv("SWIFT_DETERMINISTIC_HASHING") == nil {
    // The order of dictionaries must not differ between two runs of one seed.
    setenv("SWIFT_DETERMINISTIC_HASHING", "1", 1)
    var arguments: [UnsafeMutablePointer<CChar>?] = CommandLine.arguments.map { strdup($0) } + [nil]
    execv("/proc/self/exe", &arguments)
}
exit(await SimulationTool.run(Array(CommandLine.arguments.dropFirst())))
