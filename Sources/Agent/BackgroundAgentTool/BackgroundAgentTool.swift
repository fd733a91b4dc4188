import ProcessSupport
import RehearsalSupport
import BackgroundAgent
import BackgroundLedger
import CurlTransport
import DesktopServices
import Foundation
import Glibc

/// The program `background-agent`, which combines the agent with libcurl and the desktop. One process runs for each app id.
package enum BackgroundAgentTool {
    private static let usage = """
        usage: background-agent --app ID

        Runs the background work of one app: launches the app, transfers its files and shows its notifications.
        Apps start the agent. The agent exits when no work is left.

        example: background-agent --app stormy

        """

    package static func run() -> Never { ProcessExit.end(main(Array(ThisProcess.arguments.dropFirst()))) }

    /// Returns the exit code. 0: all work is complete, or an agent is already running. 64: the usage is wrong. 65: the ledger is
    /// damaged. 69: the simulated machine of a rehearsal is missing. 73 or 74: the files of the ledger caused an error.
    /// 75 or 76: a new start was necessary and failed. 78: the ledger is of a newer version, or a folder cannot be used.
    package static func main(_ arguments: [String]) -> Int32 {
        AgentProcess.blockSignals()
        // SIGXFSZ is ignored, because the signal would end the agent if a file exceeds the size limit of the terminal. If the
        // signal is ignored, only the transfer of this file fails.
        signal(SIGXFSZ, SIG_IGN)
        ResourceLimits.raise()
        umask((umask(0o022) | 0o022) & ~0o700)  // Only the user can write to files that the agent creates.
        if let code = OneShotCommand.answer(arguments) { return code }
        switch arguments {
        case ["--help"], ["-h"], ["--version"]:
            print(arguments == ["--version"] ? ProductVersion.complete + "\n" : usage, terminator: "")
            return 0
        case let arguments where arguments.count == 2 && arguments[0] == "--app":
            return run(appIdentifier: arguments[1])
        default:
            StandardError.write(usage)
            return 64
        }
    }

    private static func run(appIdentifier: String) -> Int32 {
        guard AppDirectories.isUsable(appIdentifier) else {
            StandardError.write("background-agent: \"\(appIdentifier)\" is not an app id\n")
            return 64
        }
        do throws(StoreError) {
            guard let process = try AgentProcess(appIdentifier: appIdentifier) else {
                StandardError.write("background-agent: an agent of \(appIdentifier) runs already\n")
                return 0
            }
            let machine: RehearsalMachine?
            do { machine = try RehearsalMachine.join() } catch {
                StandardError.write("background-agent: \(error)\n")
                return 69
            }
            if machine == nil, getenv(RehearsalHome.variable) != nil {
                StandardError.write(
                    "background-agent: \(RehearsalHome.variable) is ignored, because this home folder was not made for a rehearsal\n"
                )
            }
            let code = try run(process, appIdentifier: appIdentifier, on: machine)
            if code == AgentProcess.tryAgain { ProcessRestart.begin(after: 5) }
            // The file at this program's path is now the newer version. If the file is still this version, the new process
            // reports that it is too old.
            if code == AgentProcess.superseded { ProcessRestart.begin(after: 0) }
            return code
        } catch {
            StandardError.write("background-agent: \(error)\n")
            return FatalErrorReport.exitCode(for: error, of: appIdentifier)
        }
    }

    private static func run(_ process: AgentProcess, appIdentifier: String, on machine: RehearsalMachine?) throws(StoreError)
        -> Int32
    {
        let inbox = process.inbox
        let transport = CurlTransport(
            handler: { inbox(.transport($0)) }, userAgent: "\(appIdentifier) background-agent/\(ProductVersion.released)")
        defer { transport.stop() }
        if let machine {
            StandardError.write(
                "background-agent: this is a rehearsal: clock, network, power and notification server are simulated\n")
            let ports = AgentPorts(transport: transport, presenter: machine, conditions: machine, sessionChanged: { _ in })
            machine.begin(inbox)
            return try process.run(version: ProductVersion.complete, ports: ports, host: machine.hostEnvironment)
        }
        let loop = GLibLoop(name: "desktop")
        let presenter = DesktopPresenter(loop: loop, appName: appIdentifier, pictures: PictureReading.pixels) {
            inbox(.presenter($0))
        }
        let conditions = DesktopConditionsMonitor(
            loop: loop, handler: { inbox(.conditions($0)) },
            onSignal: { signal in
                switch signal {
                case .falling: inbox(.sleepEvent(.falling))
                case .resumed: inbox(.resumed)
                case .timeZoneChanged: inbox(.zoneChanged)
                }
            })
        let activator = process.activation { UserUnitsActivator($0, displayName: $1) }
        let ports = AgentPorts(
            transport: transport, presenter: presenter, conditions: conditions, activator: activator,
            wakeClock: process.wakeClock, sleepManager: LogindSleep(loop: loop, appName: appIdentifier) { inbox(.sleepEvent($0)) }
        ) { session in
            presenter.connect(busAddress: session?.variables["DBUS_SESSION_BUS_ADDRESS"])
        }
        let code = try process.run(version: ProductVersion.complete, ports: ports)
        // Posted work is completed before the loop ends, for example a call that removes a notification from the screen.
        presenter.stop()
        conditions.stop()
        loop.stop()
        return code
    }
}
