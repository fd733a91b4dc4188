import Foundation

/// A real WebDAV server (nginx) on loopback.
final class Nginx {
    let folder: URL
    let photos: URL
    let url: String
    private var child: Child?

    init() throws {
        folder = try TestFolder.make("ngx")
        photos = folder.appendingPathComponent("photos")
        try FileManager.default.createDirectory(at: photos, withIntermediateDirectories: true)
        let port = try Self.freePort()
        url = "http://127.0.0.1:\(port)/"
        let configuration = """
            daemon off; pid \(folder.path)/pid; error_log \(folder.path)/error.log; worker_processes 1;
            \(getuid() == 0 ? "user root;" : "")
            events {}
            http {
              access_log \(folder.path)/access.log; client_max_body_size 0;
              \(Self.temporaryPaths(in: folder))
              server { listen 127.0.0.1:\(port); root \(folder.path);
                location /photos/ { dav_methods PUT DELETE MKCOL COPY MOVE; } }
            }
            """
        let file = folder.appendingPathComponent("nginx.conf")
        try Data(configuration.utf8).write(to: file)
        child = try Child("nginx", ["-c", file.path], environment: ProcessInfo.processInfo.environment)
        try waitForPort(port)
    }

    deinit {
        child?.end()
        try? FileManager.default.removeItem(at: folder)
    }

    /// The lines of the configuration for nginx's temporary files. Users other than root cannot write to nginx's default folders.
    static func temporaryPaths(in folder: URL) -> String {
        ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map { "\($0)_temp_path \(folder.path)/tmp-\($0);" }
            .joined(separator: " ")
    }

    private static func address(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        return address
    }

    private static func withAddress<Value>(_ port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Value) -> Value {
        var address = address(port)
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
        }
    }

    private static func freePort() throws -> UInt16 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        guard withAddress(0, { bind(descriptor, $0, $1) }) == 0 else { throw Desktop.Trouble("no free port") }
        var bound = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        _ = withUnsafeMutablePointer(to: &bound) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
        }
        return UInt16(bigEndian: bound.sin_port)
    }

    /// Waits until nginx accepts connections. The test has to try this, because nginx does not report when it listens.
    private func waitForPort(_ port: UInt16) throws {
        let deadline = Date().addingTimeInterval(20)
        while Date() < deadline {
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            defer { close(descriptor) }
            if Self.withAddress(port, { connect(descriptor, $0, $1) }) == 0 { return }
            sched_yield()
        }
        throw Desktop.Trouble(
            "nginx does not listen: "
                + ((try? String(contentsOf: folder.appendingPathComponent("error.log"), encoding: .utf8)) ?? ""))
    }
}

/// Small JPEG files with or without a location.
enum JPEG {
    static var withoutPosition: Data { Data([0xFF, 0xD8, 0xFF, 0xD9]) + Data(repeating: 7, count: 1_000) }

    /// The bytes of SOI and of APP1 with an Exif block. The first directory of the block points to a GPS directory with a
    /// latitude.
    static var withPosition: Data {
        func little16(_ value: Int) -> [UInt8] { [UInt8(value & 0xFF), UInt8(value >> 8)] }
        func little32(_ value: Int) -> [UInt8] { little16(value & 0xFFFF) + little16(value >> 16) }
        func entry(_ tag: Int, _ type: Int, _ count: Int, _ value: Int) -> [UInt8] {
            little16(tag) + little16(type) + little32(count) + little32(value)
        }
        let first = little16(1) + entry(0x8825, 4, 1, 26) + little32(0)
        let gps = little16(1) + entry(2, 5, 3, 44) + little32(0)
        let tiff: [UInt8] = [0x49, 0x49, 0x2A, 0x00] + little32(8) + first + gps + Array(repeating: 1, count: 24)
        let payload = Array("Exif".utf8) + [0, 0] + tiff
        let length = payload.count + 2
        return Data([0xFF, 0xD8, 0xFF, 0xE1, UInt8(length >> 8), UInt8(length & 0xFF)] + payload + [0xFF, 0xD9])
    }
}
