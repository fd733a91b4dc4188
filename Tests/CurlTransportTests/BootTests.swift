@testable import CurlTransport
import Glibc
import Testing

@Suite struct BootTests {
    @Test func `a thread that the system has no room for is created later`() {
        var codes = [EAGAIN, EAGAIN, 0]
        #expect(Boot.waitingForRoom(pause: 0) { codes.removeFirst() } == 0)
        #expect(codes.isEmpty)
        #expect(Boot.waitingForRoom(pause: 0) { EPERM } == EPERM)
    }
}
