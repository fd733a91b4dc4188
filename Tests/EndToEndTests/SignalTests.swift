import BackgroundLedger
import Foundation
import Testing

extension EndToEnd {
    @Suite struct Signals {
        @Test(arguments: [SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPOLL, SIGPWR, SIGSTKFLT, 34, 64] as [Int32])
        func `a signal that asks for nothing does not end the agent`(_ signal: Int32) throws {
            let home = try Home()
            home.environment["STORMY_NO_AGENT"] = "1"
            try home.stormy("place", "add", "Here", "1,1", "--no-sync")
            try home.stormy("schedule")
            let agent = try home.startAgent()
            try home.wait("the agent") { try $0.fact(.agent) }
            kill(agent.pid, signal)
            // If an earlier signal had ended the agent, the exit code of the agent would not be 0.
            agent.end(SIGTERM)
            #expect(agent.waitForEnd() == 0)
        }
    }
}
