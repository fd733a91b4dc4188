import FaultyServer
import Foundation
import StormyFixtures
import TestSamples
import Testing

extension EndToEnd {
    /// Tests that `stormy doctor` finds each planted fault, and that the printed fix repairs the fault.
    @Suite struct Doctor {
        private func server() async throws -> FaultyServer {
            let server = try await FaultyServer.start()
            Weather.serve(.json(Weather.calm), on: server)
            return server
        }

        @Test func `a healthy home has no findings`() async throws {
            let patient = try Patient(try Desktop(), try await server())
            let examination = try patient.examine()
            #expect(examination.rows.filter { $0.status != "ok" }.isEmpty && examination.status == 0, "\(examination.rows)")
            #expect(examination.errors.isEmpty)
            let plain = try patient.home.stormy("doctor", "--all")
            // If this desktop does not have a capability, this is not a failure.
            let parts = plain.output.components(separatedBy: "\n\nCapabilities of this desktop:\n")
            #expect(plain.status == 0 && parts.count == 2, "\(plain)")
            let lines = parts[0].split(separator: "\n")
            #expect(lines.first == "No problems found; \(lines.count - 1) checks passed.", "\(plain)")
            #expect(lines.dropFirst().allSatisfy { $0.hasPrefix("✓ ") }, "\(plain)")
            #expect(parts[1].contains("- detects whether the network is metered: no. "), "\(plain)")
            let short = try patient.home.stormy("doctor").output
            #expect(short == "No problems found; \(lines.count - 1) checks passed (--all shows these checks).\n", "\(short)")
        }

        @Test(arguments: ["doctor", "status", "why", "history", "transfers"])
        func `commands that only show create no files and start no agent`(_ verb: String) throws {
            let home = try Home()
            let before = try FileManager.default.subpathsOfDirectory(atPath: home.folder.path)
            for arguments in [[verb], [verb, "--json"]] {
                #expect(try home.stormy(arguments).status == (verb == "doctor" ? 2 : 0), "no desktop is known here")
            }
            #expect(try FileManager.default.subpathsOfDirectory(atPath: home.folder.path) == before)
            #expect(home.agentPID == nil)
        }

        @Test func `help, version and unknown commands create no files`() throws {
            let home = try Home()
            let before = try FileManager.default.subpathsOfDirectory(atPath: home.folder.path)
            for words in [["help"], ["help", "check"], ["check", "--help"], ["--version"], ["nonsense"]] {
                try home.stormy(words)
            }
            #expect(try FileManager.default.subpathsOfDirectory(atPath: home.folder.path) == before)
        }

        @Test(arguments: PlantedFaults.groups.keys.sorted())
        func `doctor finds what is broken, and the printed fixes repair it`(_ group: String) async throws {
            var desktop = try Desktop()
            for fault in TableSample.rows(of: PlantedFaults.groups[group] ?? [], in: group) {
                if group == "notifications" { desktop = try Desktop() }
                try await examine(fault, on: desktop)
            }
        }

        private func examine(_ fault: PlantedFault, on desktop: Desktop) async throws {
            let patient = try Patient(desktop, try await server())
            // When an agent starts, it restricts the mode of its folders. An agent would therefore repair the fault of this
            // check, so the test ends the agent first.
            if fault.check == "files" { patient.home.endAgent() }
            try fault.plant(patient)
            let found = try patient.examine()
            let row = try #require(found.row(fault.check), "\(fault.name): \(found.rows)")
            #expect(row.status != "ok" && (fault.says.isEmpty || row.message.contains(fault.says)), "\(fault.name): \(row)")
            #expect(found.status == (found.rows.contains { $0.status == "failed" } ? 2 : 1), "\(fault.name)")
            switch fault.mending {
            case .byItsFix:
                let fix = try #require(row.fix, "\(fault.name): \(row)")
                let after = try patient.carryOut(fix)
                #expect(after.row(fault.check)?.status ?? "ok" == "ok", "\(fault.name): \(fix): \(after.rows) \(after.errors)")
            case .byHand(let mend):
                try mend(patient)
                let after = try patient.examine()
                #expect(after.row(fault.check)?.status ?? "ok" == "ok", "\(fault.name): \(after.rows)")
            case .notAtAll: break
            }
        }

        /// `--fix` runs the printed fixes. `--fix` does not change files that only the user can correct.
        @Test func `--fix runs the safe fixes and leaves a broken configuration file unchanged`() async throws {
            let patient = try Patient(try Desktop(), try await server())
            try patient.home.killAgent()
            try patient.shell("chmod 777 '\(patient.directories.configuration.path)'; rm '\(patient.path("config/autostart"))'/*")
            _ = try patient.write("[weather\n", to: "config/stormy/config.toml")
            let fixed = try patient.home.stormy("doctor", "--fix", "--json")
            let rows = try JSONDecoder().decode([Patient.Row].self, from: Data(fixed.output.utf8))
            #expect(rows.filter { $0.status != "ok" }.map(\.check) == ["configuration"], "\(rows)")
            #expect(fixed.status == 2 && fixed.errors.contains("chmod go-w"), "\(fixed)")
            #expect(try String(contentsOfFile: patient.path("config/stormy/config.toml"), encoding: .utf8) == "[weather\n")
        }

        @Test func `--fix mends a mode that is found only after another mode was mended`() async throws {
            let patient = try Patient(try Desktop(), try await server())
            let token = try patient.write("t0k3n\n", to: "token", mode: 0o644)
            let configuration = try patient.write(
                """
                [weather]
                base_url = "\(patient.server.url)"
                [upload.destinations.first]
                kind = "webdav"
                url = "\(patient.server.url)/first/"
                user = "me"
                password = "hunter2"
                [upload.destinations.second]
                kind = "webdav"
                url = "\(patient.server.url)/second/"
                token_file = "\(token)"
                """, to: "config/stormy/config.toml", mode: 0o644)
            let fixed = try patient.home.stormy("doctor", "--fix", "--json")
            let rows = try JSONDecoder().decode([Patient.Row].self, from: Data(fixed.output.utf8))
            #expect(rows.filter { ["configuration", "destination"].contains($0.check) && $0.status != "ok" }.isEmpty, "\(rows)")
            for file in [configuration, token] {
                var information = stat()
                #expect(stat(file, &information) == 0 && information.st_mode & 0o777 == 0o600, "\(file): \(fixed.errors)")
            }
        }

        /// The disk is mounted in a private mount namespace.
        @Test(.enabled(if: Namespaces.areAllowed), arguments: [("size=3m", "is full"), ("nr_inodes=12", "too many")])
        func `a disk without free space or inodes is found`(_ limit: String, _ says: String) throws {
            let home = try Home()
            let (tool, state) = (Home.product("stormy"), home.directories.state.path)
            let script = """
                mkdir -p '\(state)' && mount -t tmpfs -o \(limit),mode=700 none '\(state)' || exit 9
                for n in $(seq 20); do head -c 300k /dev/zero > '\(state)/fill'$n; done 2>/dev/null
                '\(tool)' doctor --all | grep 'disk:'
                rm '\(state)'/fill*; '\(tool)' doctor --all | grep 'disk:'
                """
            let result = try Child.run("unshare", Namespaces.withOwnMounts(script), environment: home.environment)
            let lines = result.output.split(separator: "\n")
            #expect(
                lines.count == 2 && lines[0].hasPrefix("✗") && lines[0].contains(says) && !lines[1].hasPrefix("✗"), "\(result)")
        }

        @Test(.enabled(if: Namespaces.areAllowed)) func `a home that cannot be written is found`() throws {
            let home = try Home()
            let (readOnly, file) = (home.folder.path + "/read-only", home.folder.path + "/file")
            let doctor = "XDG_CONFIG_HOME= XDG_STATE_HOME= XDG_DATA_HOME= '\(Home.product("stormy"))' doctor | grep 'files:'"
            let script = """
                mkdir '\(readOnly)' && mount -t tmpfs -o ro none '\(readOnly)' || exit 9
                HOME='\(readOnly)' \(doctor)
                : > '\(file)'
                HOME='\(file)/home' \(doctor)
                """
            let result = try Child.run("unshare", Namespaces.withOwnMounts(script), environment: home.environment)
            #expect(result.output.contains("✗ files: \(readOnly) is on a disk that is mounted read-only"), "\(result)")
            #expect(result.output.contains("✗ files: \(file) is not a folder"), "\(result)")
        }

        /// `doctor` runs first without a network, and then on battery with the power saver on.
        @Test(.enabled(if: Namespaces.areAllowed)) func `a missing network and power saving are reported`() throws {
            let home = try Home()
            let offline = try Child.run(
                "unshare", Namespaces.withoutNetwork(Home.product("stormy")) + ["doctor"], environment: home.environment)
            #expect(offline.output.contains("! network: no network is available"), "\(offline)")
            let services = try SystemServices([.power, .profiles])
            home.environment.merge(services.environment) { $1 }
            try services.set(.power, "OnBattery", "true")
            #expect(try home.stormy("doctor", "--all").output.contains("✓ power: This computer runs on battery"))
            try services.set(.profiles, "ActiveProfile", "'power-saver'")
            #expect(try home.stormy("doctor").output.contains("! power: power saving is on"))
        }

        @Test func `at least 50 faults are planted, and at least 45 have a fix`() {
            let all = PlantedFaults.all
            #expect(
                all.count >= 50 && all.filter(\.isMendedByItsFix).count >= 45,
                "\(all.count), \(all.filter(\.isMendedByItsFix).count)")
        }

        /// `doctor` checks the files with passwords and tokens of all kinds of destinations.
        @Test(arguments: [0o600, 0o644])
        func `no secret is printed, whatever is wrong with the configuration`(_ mode: Int) async throws {
            let patient = try Patient(try Desktop(), try await server())
            let secrets = ["hunter2", "t0k3n", "s3cr3tkey", "inTheAddress"]
            let token = try patient.write("t0k3n\n", to: "token", mode: mode_t(mode))
            let key = try patient.write("s3cr3tkey\nsecond", to: "key", mode: mode_t(mode))
            let text = """
                [weather]
                base_url = "http://me:inTheAddress@localhost:1"
                [upload]
                default = "dav"
                [upload.destinations.dav]
                kind = "webdav"
                url = "http://dav.example.org/photos/?signature=inTheAddress"
                user = "me"
                password = "hunter2"
                [upload.destinations.immich]
                kind = "immich"
                url = "http://photos.example.org"
                token_file = "\(token)"
                [upload.destinations.s3]
                kind = "s3"
                url = "http://s3.example.org"
                bucket = "b"
                access_key = "me"
                secret_key_file = "\(key)"
                """
            for (broken, configuredMode) in [
                (text, mode), (text + "\nkind = hunter2", 0o600), (text + "\nkeep_location = 3", 0o600),
            ] {
                _ = try patient.write(broken, to: "config/stormy/config.toml", mode: mode_t(configuredMode))
                try patient.home.stormy("check")
                for arguments in [["doctor"], ["doctor", "--json"], ["doctor", "--fix"]] {
                    let result = try patient.home.stormy(arguments)
                    #expect(result.status != 0)
                    for secret in secrets {
                        #expect(!(result.output + result.errors).contains(secret), "\(secret): \(result)")
                    }
                }
            }
        }
    }
}
