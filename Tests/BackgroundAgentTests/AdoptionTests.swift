@testable import BackgroundLedger
import BackgroundScheduling
import Foundation
import ProcessSupport
import Testing

@testable import BackgroundAgent

/// Tests of processes that an earlier agent recorded in the ledger.
@Suite(.timeLimit(.minutes(30))) struct AdoptionTests {
    /// A home folder with an app whose process does nothing until it is ended.
    private final class Ground {
        static let program = "/bin/sl" + "eep"
        let ledger: Ledger
        let loop: EventLoop
        private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("adoption-" + UUID().uuidString)

        init() throws {
            loop = try EventLoop()
            ledger = try Ledger(AppDirectories(appIdentifier: "app", environment: ["HOME": folder.path]))
            try ledger.write {
                try $0.setFact(
                    .app, AppRecord(executable: Self.program, arguments: ["600"], version: "1", displayName: "App"))
            }
        }

        deinit { try? FileManager.default.removeItem(at: folder) }
    }

    /// Returns an identity with the PID of `process` in another PID namespace.
    private static func foreign(_ process: ProcessIdentity) -> ProcessIdentity {
        ProcessIdentity(pid: process.pid, start: process.start ^ 1 << 40)
    }

    /// Lets a launcher take over a launch whose recorded process has the PID of an unrelated process. Expects that this process
    /// receives no signal.
    private func expectNoSignal(recorded: (ProcessIdentity) -> ProcessIdentity) throws {
        let ground = try Ground()
        let starter = ProcessLauncher(ledger: ground.ledger, loop: ground.loop)
        let launched = try starter.start(7)
        let stranger = try ChildProcess(path: Ground.program, arguments: ["600"], environment: [:]).start()
        let process = recorded(try #require(ProcessIdentity(pid: stranger)))
        let next = ProcessLauncher(ledger: ground.ledger, loop: ground.loop)
        #expect(next.adopt(7, process) == .outOfReach)
        next.warn(7)
        next.kill(7)
        // If the launcher had sent a signal, this signal would have ended the process.
        kill(stranger, SIGINT)
        #expect(ChildProcess.wait(for: stranger) == 128 + SIGINT)
        #expect(next.adopt(7, launched) == .watched)
        next.onEnd = { _, _ in ground.loop.stop() }
        next.kill(7)
        withExtendedLifetime((starter, next)) { ground.loop.run(turn: {}) }
        #expect(next.adopt(7, process) == .gone)
    }

    @Test func `a recorded process of another PID namespace is not signalled`() throws {
        try expectNoSignal(recorded: Self.foreign)
    }

    @Test func `a later process with the recorded number is not signalled`() throws {
        try expectNoSignal { ProcessIdentity(pid: $0.pid, start: $0.start - 1) }
    }

    private static let elsewhere = [
        foreign(.current), ProcessIdentity(pid: ProcessIdentity.current.pid, start: ProcessIdentity.current.start + 1),
    ]

    @Test(arguments: elsewhere)
    func `the end of a process in another PID or time namespace is reported when its lock is free`(
        _ process: ProcessIdentity
    ) throws {
        let ground = try Ground()
        let directories = ground.ledger.directories
        let watch = ProcessWatch(loop: ground.loop, directories: directories)
        #expect(!watch.watch(process))
        var ended: [ProcessIdentity] = []
        watch.onEnd = { process in
            ended.append(process)
            ground.loop.stop()
        }
        var presence: ProcessPresence? = ProcessPresence(of: process, in: directories)
        withExtendedLifetime(presence) { #expect(watch.watch(process)) }
        presence = nil
        withExtendedLifetime(watch) { ground.loop.run(turn: {}) }
        #expect(ended == [process])
    }
}
