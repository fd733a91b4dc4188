import Foundation
import StormyFixtures
import Testing

extension EndToEnd {
    /// Tests of an app that is refreshed in the background, loses the network, and is then opened by the user. The tests run in a
    /// private network namespace with a real server.
    @Suite struct Airplane {
        let home: Home

        init() throws { home = try Home() }

        private func write(_ text: String, to path: String) throws {
            let file = home.folder.appendingPathComponent(path)
            try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(text.utf8).write(to: file)
        }

        /// Runs a script. Returns the output of each step by the step's name.
        private func play(_ script: String) throws -> [String: String] {
            let nginx = home.folder.appendingPathComponent("nginx")
            try write("", to: "nginx/www/photos/.keep")
            try write(
                """
                pid \(nginx.path)/pid; error_log \(nginx.path)/error.log; worker_processes 1; user root;
                events {}
                http { access_log off; \(Nginx.temporaryPaths(in: nginx))
                  server { listen 10.9.9.1:8080; root \(nginx.path)/www; location /photos/ { dav_methods PUT; } } }
                """, to: "nginx/conf")
            try home.configure(
                """
                [weather]
                base_url = "http://10.9.9.1:8080"
                [upload.destinations.nas]
                kind = "put"
                url = "http://10.9.9.1:8080/photos/"
                """)
            let whole = """
                set -e
                stormy() { "\(Home.product("stormy"))" "$@"; }
                say() { echo "== $1"; }
                cd "\(home.folder.path)"
                ip link set lo up
                online() { ip address add 10.9.9.1/32 dev lo; }
                offline() { ip address del 10.9.9.1/32 dev lo; }
                online
                nginx -c "\(nginx.path)/conf"
                trap 'stormy quit >/dev/null 2>&1; nginx -c "\(nginx.path)/conf" -s stop' EXIT
                \(script)
                """
            let result = try Child.run("unshare", ["-n", "sh", "-c", whole], environment: home.environment)
            #expect(result.status == 0, "\(result.output)\n\(result.errors)")
            var (said, name) = ([String: String](), "")
            for line in result.output.split(separator: "\n") {
                if line.hasPrefix("== ") { name = String(line.dropFirst(3)) } else { said[name, default: ""] += line + "\n" }
            }
            return said
        }

        @Test(.enabled(if: Namespaces.areAllowed && getuid() == 0, "a network of one's own is root's"))
        func `offline, the last forecast is shown, and a photo is uploaded when the network is back`() throws {
            try write(Weather.calm, to: "nginx/www/v1/forecast")
            try write(Weather.forecast(), to: "stormy.json")
            try JPEG.withoutPosition.write(to: home.folder.appendingPathComponent("photo.jpg"))
            let said = try play(
                """
                # Another date than that of what follows, which is asked for by it.
                touch -d yesterday nginx/www/v1/forecast
                stormy schedule; stormy place add Here 1,1
                cp stormy.json nginx/www/v1/forecast
                stormy simulate launch StormyNoon --wait
                offline
                say never; stormy check --offline
                say auto; stormy check 2>&1
                say async; stormy check --fresh 2>&1 || echo "exit $?"
                say queued; stormy upload photo.jpg; ls nginx/www/photos
                online
                say sent; stormy upload --wait photo.jpg; ls nginx/www/photos
                """)
            #expect(said["never"]?.hasPrefix("Here: stormy.\n") == true, "\(said)")
            #expect(said["auto"]?.hasPrefix("Here: stormy.\n") == true, "\(said)")
            #expect(said["auto"]?.contains("Not refreshed: ") == true, "\(said)")
            #expect(said["async"]?.hasSuffix("exit 69\n") == true, "\(said)")
            #expect(said["queued"]?.contains("photo.jpg\n") == false, "\(said)")
            #expect(said["sent"]?.hasSuffix("photo.jpg\n") == true, "\(said)")
        }
    }
}
