import Foundation
import Testing
import TransferMachines

@testable import CurlTransport

/// A server with nginx, TLS, HTTP/2 and a self-signed certificate.
private final class SecureServer {
    let folder: URL
    let port: UInt16
    var authority: String { folder.appending(path: "cert.pem").path }
    var log: String { (try? String(contentsOf: folder.appending(path: "access.log"), encoding: .utf8)) ?? "" }
    private var process: Process?

    init() throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "h2-" + UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        port = UInt16.random(in: 20_000..<30_000)
        let script = """
            set -e
            openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost \\
              -addext subjectAltName=DNS:localhost 2>/dev/null
            mkdir www; head -c 100000 /dev/zero > www/file
            """
        try Self.run("/bin/sh", ["-c", script], in: folder)
        let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map { "\($0)_temp_path \(folder.path)/tmp-\($0);" }
        let configuration = """
            daemon off; master_process off; pid \(folder.path)/pid; error_log \(folder.path)/error.log;
            \(getuid() == 0 ? "user root;" : "")
            events {}
            http { log_format p '$server_protocol $connection $status'; access_log \(folder.path)/access.log p; \(paths.joined(separator: " "))
              server { listen 127.0.0.1:\(port) ssl http2; root \(folder.path)/www;
                ssl_certificate \(folder.path)/cert.pem; ssl_certificate_key \(folder.path)/key.pem; } }
            """
        try configuration.write(to: folder.appending(path: "nginx.conf"), atomically: true, encoding: .utf8)
        let nginx = Process()
        nginx.executableURL = URL(fileURLWithPath: "/usr/sbin/nginx")
        nginx.arguments = ["-c", folder.appending(path: "nginx.conf").path]
        nginx.standardInput = FileHandle.nullDevice
        nginx.standardOutput = FileHandle.nullDevice
        nginx.standardError = FileHandle.nullDevice
        try nginx.run()
        process = nginx
        try waitForPort()
    }

    deinit {
        if let process {
            // In this test, nginx is one process without workers. A thread of libdispatch blocks SIGTERM, and its child inherits
            // this, so only SIGKILL ends nginx.
            kill(process.processIdentifier, SIGKILL)
            process.waitUntilExit()
        }
        try? FileManager.default.removeItem(at: folder)
    }

    private static func run(_ program: String, _ arguments: [String], in folder: URL) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        process.currentDirectoryURL = folder
        process.standardInput = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        try #require(process.terminationStatus == 0)
    }

    private func waitForPort() throws {
        let deadline = Date().addingTimeInterval(20)
        while Date() < deadline {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            address.sin_addr.s_addr = inet_addr("127.0.0.1")
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            defer { close(descriptor) }
            let result = withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
            if result == 0 { return }
            sched_yield()
        }
        throw CocoaError(.fileReadUnknown)
    }
}

@Suite(.timeLimit(.minutes(30)), .enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/sbin/nginx")))
struct CurlTransportHTTP2Tests {
    @Test func `many requests over HTTP2 share one connection`() async throws {
        let server = try SecureServer()
        let bench = Bench(certificateAuthorities: server.authority)
        for number in 1...20 {
            let request = WireRequest(method: "GET", url: "https://localhost:\(server.port)/file")
            bench.transport.start(AttemptID(transfer: Int64(number), number: 1), request, source: nil, sink: Memory())
        }
        let ends = await bench.ends(20).ends.values.flatMap { $0 }
        #expect(ends.allSatisfy { $0.failure == nil && $0.bytesReceived == 100_000 })
        let lines = server.log.split(separator: "\n").map { $0.split(separator: " ") }
        #expect(lines.count == 20)
        #expect(lines.allSatisfy { $0[0] == "HTTP/2.0" }, "\(server.log)")
        #expect(Set(lines.map { $0[1] }).count == 1, "one connection")
    }
}
