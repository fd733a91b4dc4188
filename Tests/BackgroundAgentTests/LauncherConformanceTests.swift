@testable import BackgroundLedger
import BackgroundScheduling
import Foundation
import ProcessSupport
import Synchronization
import Testing

@testable import BackgroundAgent
@testable import BackgroundTasksTesting

/// The same tests for two launchers: the launcher of real processes in an event loop, and the launcher of processes of a
/// simulated host. The agent must receive the same events from both launchers.
@Suite(.timeLimit(.minutes(30))) struct LauncherConformanceTests {
    enum Kind: String, CaseIterable {
        case real
        case simulated
    }

    /// A launcher whose processes do nothing until they are ended. This class also collects the launcher's reports about ended
    /// processes.
    private final class Ground {
        let launcher: any Launcher<ProcessIdentity>
        private let next: () throws -> (Int64, ProcessEnd)
        private let breakLaunches: () throws -> Void
        private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("launcher-" + UUID().uuidString)

        init(_ kind: Kind) throws {
            let directories = AppDirectories(appIdentifier: "app", environment: ["HOME": folder.path])
            switch kind {
            case .real:
                let ledger = try Ledger(directories)
                func setApp(_ executable: String) throws {
                    try ledger.write {
                        try $0.setFact(
                            .app, AppRecord(executable: executable, arguments: ["600"], version: "1", displayName: "App"))
                    }
                }
                try setApp("/bin/sl" + "eep")
                let loop = try EventLoop()
                let processes = ProcessLauncher(ledger: ledger, loop: loop)
                var ends: [(Int64, ProcessEnd)] = []
                processes.onEnd = { launch, end in
                    ends.append((launch, end))
                    loop.stop()
                }
                launcher = processes
                next = {
                    if ends.isEmpty { loop.run(turn: {}) }
                    return ends.removeFirst()
                }
                breakLaunches = { try setApp("/nonexistent/app") }
            case .simulated:
                let processes = VirtualProcesses(program: Idle(), wake: {})
                var ends: [(Int64, ProcessEnd)] = []
                launcher = processes
                next = {
                    ends += processes.drainEnds().launches
                    return ends.removeFirst()
                }
                breakLaunches = { processes.refuse(true) }
            }
        }

        deinit { try? FileManager.default.removeItem(at: folder) }

        /// Waits for the launcher's next report about an ended process.
        func nextEnd() throws -> (launch: Int64, end: ProcessEnd) { try next() }

        /// Makes every later launch fail to start.
        func refuseLaunches() throws { try breakLaunches() }
    }

    private final class Idle: VirtualProgram {
        func begin(_ process: VirtualProcess) {}
        func warned(_ process: VirtualProcess) {}
        func died(_ process: VirtualProcess) {}
    }

    @Test(arguments: Kind.allCases) func `a process lives until it is killed`(_ kind: Kind) throws {
        let ground = try Ground(kind)
        #expect(!ground.launcher.isAlive(7))
        #expect(try ground.launcher.start(7).pid > 0)
        #expect(ground.launcher.isAlive(7))
        ground.launcher.kill(7)
        let (launch, end) = try ground.nextEnd()
        #expect(launch == 7)
        #expect(end == .signalled(9))
        #expect(!ground.launcher.isAlive(7))
        ground.launcher.forget(7)
    }

    @Test(arguments: Kind.allCases) func `every launch has a separate process`(_ kind: Kind) throws {
        let ground = try Ground(kind)
        #expect(try ground.launcher.start(1) != ground.launcher.start(2))
        ground.launcher.kill(2)
        #expect(try ground.nextEnd().launch == 2)
        #expect(ground.launcher.isAlive(1))
        ground.launcher.kill(1)
        #expect(try ground.nextEnd().launch == 1)
    }

    @Test(arguments: Kind.allCases) func `an ended process is neither signalled nor adopted`(_ kind: Kind) throws {
        let ground = try Ground(kind)
        let process = try ground.launcher.start(3)
        ground.launcher.kill(3)
        _ = try ground.nextEnd()
        ground.launcher.warn(3)
        ground.launcher.kill(3)
        #expect(ground.launcher.adopt(3, process) == .gone)
        #expect(!ground.launcher.isAlive(3))
    }

    @Test(arguments: Kind.allCases) func `a launch that cannot start throws an error and leaves no process`(_ kind: Kind) throws {
        let ground = try Ground(kind)
        try ground.refuseLaunches()
        #expect(throws: (any Error).self) { try ground.launcher.start(4) }
        #expect(!ground.launcher.isAlive(4))
    }

    @Test(arguments: Kind.allCases) func `a living process is adopted`(_ kind: Kind) throws {
        let ground = try Ground(kind)
        let process = try ground.launcher.start(5)
        #expect(ground.launcher.adopt(5, process) == .watched)
        ground.launcher.kill(5)
        #expect(try ground.nextEnd().launch == 5)
    }
}
