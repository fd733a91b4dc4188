import CLinux
import Foundation
import ProcessSupport
import Testing

/// Tests of child processes that end, and of child processes that do not end.
@Suite struct ChildProcessTests {
    private let test: TestLedger
    /// A named pipe. A process that reads from this pipe waits forever.
    private let fifo: String

    init() throws {
        test = try TestLedger()
        fifo = test.folder.appendingPathComponent("fifo").path
        #expect(mkfifo(fifo, 0o600) == 0)
    }

    private func run(_ script: String, within seconds: Double, limit: Int = 100) throws -> ChildProcess.End {
        try ChildProcess(path: "/bin/sh", arguments: ["-c", script], environment: ["FIFO": fifo]).run(
            within: seconds, outputLimit: limit)
    }

    @Test func `a child that ends reports its exit code and its output`() throws {
        let end = try run("echo out; echo err >&2; exit 7", within: 300)
        #expect(end.code == 7 && end.output == "out\nerr\n" && !end.wasLate)
        #expect(try run("kill -9 $$", within: 300).code == 137)
        #expect(try run("echo 123456789", within: 300, limit: 4).output == "1234")
    }

    /// In the three cases the output of the child is open, or closed, or the child ignores SIGTERM.
    @Test(arguments: ["", "exec >&- 2>&-; ", "trap '' TERM; "])
    func `a child that does not end in time is killed`(_ first: String) throws {
        let end = try run(first + "read line < $FIFO", within: 0.2)
        #expect(end.wasLate && end.code == 137)
    }

    /// The child has ended, but a background process of the child can still write to the output.
    @Test func `a background process of an ended child does not delay the result`() throws {
        let end = try run("echo $$; (exec cat $FIFO) & exit 3", within: 0.2)
        #expect(end.code == 3 && !end.wasLate && !end.output.isEmpty)
        // The background process ends after the test has opened and closed the pipe.
        let writer = open(fifo, O_WRONLY | O_NONBLOCK)
        #expect(writer >= 0)
        close(writer)
    }

    @Test func `a missing program is reported as a failure`() {
        let missing = ChildProcess(path: "/nowhere/program", arguments: [], environment: [:])
        #expect(throws: ChildProcess.Failure.self) { try missing.run(within: 300, outputLimit: 1) }
    }

    @Test func `a random UUID has version 4 and is different each time`() {
        let all = (0..<1_000).map { _ in UUID.random().uuidString }
        #expect(Set(all).count == all.count)
        #expect(all.allSatisfy { $0.dropFirst(14).first == "4" && "89AB".contains($0.dropFirst(19).first!) })
    }

    @Test func `ThisProcess has the arguments of the process`() {
        #expect(ThisProcess.arguments == CommandLine.arguments && !ThisProcess.arguments.isEmpty)
    }

    /// The process has two threads: the first thread waits, and the second thread works.
    @Test func `a process is at work if one of its threads is`() throws {
        let script = """
            import os, threading
            def work():
                os.close(os.open(os.environ["FIFO"], os.O_WRONLY))
                while True: pass
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            """
        let child = ChildProcess(
            path: "/usr/bin/python3", arguments: ["-c", script], environment: ["FIFO": fifo])
        let pid = try child.start()
        defer {
            kill(pid, SIGKILL)
            waitpid(pid, nil, 0)
        }
        // This call of `open` returns when the second thread has started.
        close(open(fifo, O_RDONLY))
        #expect(RunningProcess(pid).isAtWork)
    }
}
