import BackgroundLedger
import FaultyServer
import Foundation
import Testing

extension EndToEnd {
    /// Tests of background sessions as an app for iOS uses them: tasks, delegates and relaunches.
    @Suite struct Sessions {
        let server: FaultyServer
        let home: Home
        let log: URL

        static let file = Payload.pattern(3_000_000)

        init() async throws {
            server = try await FaultyServer.start()
            home = try Home(app: "courier-example")
            log = home.folder.appendingPathComponent("courier.log")
            try Data().write(to: log)
            home.environment["COURIER_LOG"] = log.path
            home.environment["COURIER_FOLDER"] = home.folder.path
            home.environment["BACKGROUND_RETRY_BASE"] = "0.05"
        }

        @discardableResult
        private func courier(_ words: String...) throws -> Child.Result { try home.run("courier-example", words) }

        private func begin(_ words: String...) throws -> Child {
            try Child(Home.product("courier-example"), words, environment: home.environment)
        }

        private var lines: [String] {
            ((try? String(contentsOf: log, encoding: .utf8)) ?? "").split(separator: "\n").map(String.init)
        }

        private func waitForLine(_ line: String) throws {
            guard FileWatch.wait(log.path, until: { $0.contains(line + "\n") }) != nil else {
                throw Desktop.Trouble("no \"\(line)\", but \(lines); \(home.log)")
            }
        }

        private func serve(_ path: String = "/file") -> String {
            server.route("GET", path, .file(Self.file, etag: "\"v1\""))
            return server.url + path
        }

        /// Serves half of the file, and serves the other half when the test opens a gate. The server supports range requests.
        private func serveHalf(_ path: String = "/half") -> String {
            let half = Self.file.count / 2
            server.route(
                "GET", path,
                ResponseScript([
                    .status(200), .headers(["Content-Length": "\(Self.file.count)", "ETag": "\"v1\""]),
                    .body(Self.file.slice(0..<half)), .hold(until: path), .body(Self.file.slice(half..<Self.file.count)),
                ]),
                .file(Self.file, etag: "\"v1\""))
            return server.url + path
        }

        private func waitForBytes(_ count: Int64 = 1) throws {
            try home.wait("\(count) bytes") { try $0.transfers().first.flatMap { $0.bytesDone >= count ? true : nil } }
        }

        // MARK: Delegates

        @Test func `a delegate receives the events of its tasks`() throws {
            try courier("get", serve())
            // This process received all events.
            #expect(lines == ["finish get0 3000000", "metrics get0 1", "complete get0 ok", "invalid"])
        }

        /// Equal tasks are separate transfers, as on iOS.
        @Test func `two equal tasks are two transfers`() throws {
            let url = serve()
            try courier("get", url, url)
            #expect(lines.filter { $0.hasPrefix("finish") }.sorted() == ["finish get0 3000000", "finish get1 3000000"])
            #expect(server.requests(matching: "/file").count == 2)
        }

        @Test func `an HTTP error status is not a task error`() throws {
            try courier("get", server.url + "/nothing")
            #expect(lines.contains("complete get0 ok"))
        }

        @Test func `a transfer that ends without its app launches the app`() throws {
            try courier("leave", serve(), "3")
            try home.waitForEnded("urlSession")
            try home.waitForQuiet()
            #expect(lines.filter { $0.hasPrefix("finish") }.sorted() == (0..<3).map { "finish left\($0) 3000000" })
            #expect(lines.filter { $0.hasPrefix("launched") }.allSatisfy { $0 == "launched for courier" })
        }

        /// Foundation writes user defaults only when `synchronize()` is called. Code for iOS never calls this method.
        @Test func `user defaults that a launch sets are visible to the next process`() throws {
            home.environment["COURIER_DEFAULTS"] = "1"
            try courier("leave", serve())
            try home.waitForEnded("urlSession")
            try home.waitForQuiet()
            try courier("started")
            try courier("started")
            #expect(lines.filter { $0.hasPrefix("started") } == ["started false 0", "started true 1", "started true 2"])
        }

        /// Every app that includes the commands can show and resume the transfers that `quit` paused.
        @Test func `transfers that quit paused can be resumed by command`() throws {
            try courier("leave", serveHalf(), "1")
            try waitForBytes()
            #expect(try courier("background", "quit").output.contains("Paused 1 transfer"))
            #expect(try courier("background", "status").output.contains("Transfers: 1 paused"))
            #expect(try courier("background", "transfers").output.contains("paused"))
            #expect(try courier("background", "transfers", "resume", "7").status == 66)
            server.openGate("/half")
            #expect(try courier("background", "transfers", "resume", "all").status == 0)
            try home.waitForEnded("urlSession")
            #expect(lines.contains("finish left0 3000000"))
            #expect(try courier("background", "help", "quit").output.contains("courier-example background quit"))
        }

        /// The app has no scene for the session. The handler is the `UIApplicationDelegate`, the session with its delegate, or
        /// a closure that creates the session. The end of each task is delivered once, and the final event comes after the end
        /// of the last task.
        @Test(arguments: ["delegate", "handler", "application"])
        func `without a scene the session delegate receives the events`(_ form: String) throws {
            home.environment["COURIER_FORM"] = form
            try courier("leave", serve(), "3")
            try home.waitForEnded("urlSession")
            try home.waitForQuiet()
            let launches = try Ledger(home.directories).read { try $0.history(limit: 100) }.filter { $0.kind == .urlSession }
            #expect(launches.allSatisfy { $0.outcome == .completed }, "\(lines)")
            #expect(lines.filter { $0.hasPrefix("complete") }.sorted() == (0..<3).map { "complete left\($0) ok" })
            #expect(!lines.contains("launched for courier"))
            // In each batch of events, the final event comes after the end of the last task.
            #expect(lines.filter { $0 == "events delivered" }.count >= launches.count)
            let last = try #require(lines.lastIndex { $0.hasPrefix("complete") })
            #expect(lines[last...].contains("events delivered"))
            #expect(lines.contains("handle events for courier") == (form != "delegate"))
            #expect(lines.filter { $0 == "launched" }.count == (form == "application" ? launches.count : 0))
            #expect(!lines.contains("in the background"), "a launch by the agent was never in the foreground")
        }

        /// A transfer that hangs does not delay other transfers. Many transfers share one launch.
        @Test func `a thousand transfers cause few launches`() throws {
            server.route("GET", "/small", .file("small", etag: "\"s\""))
            server.route("GET", "/never", .silence)
            try courier("leave", server.url + "/never")
            try courier("leave", server.url + "/small", "1000")
            try home.wait("a thousand told") { transaction in
                try transaction.deliveredTransfers(session: "courier", since: .distantPast).count == 1_000 ? true : nil
            }
            try home.wait("the last launch") { try $0.liveLaunches().isEmpty ? true : nil }
            // On a busy machine, the downloads take minutes. The app is launched again and again while downloads complete.
            let launches = lines.filter { $0 == "launched for courier" }.count
            #expect(launches <= 50, "\(launches) launches")
            #expect(lines.filter { $0.hasPrefix("complete left") && $0.hasSuffix(" ok") }.count == 1_000)
        }

        @Test func `without launch events the events wait for the app`() throws {
            home.environment["COURIER_QUIET"] = "1"
            try courier("leave", serve())
            try home.wait("the end") { try $0.transfers().first?.state == .completed ? true : nil }
            #expect(lines.isEmpty)
            try courier("list")
            try waitForLine("complete left0 ok")
            #expect(!lines.contains("launched for courier"))
        }

        @Test func `a handler that crashed receives its events again`() throws {
            home.environment["BACKGROUND_APP_CRASH_AT"] = "app.beforeResult"
            home.environment["STORMY_NO_AGENT"] = nil
            let url = serve()
            try courier("leave", url)
            try home.waitForEnded("urlSession")
            try home.killAgent()
            home.environment["BACKGROUND_APP_CRASH_AT"] = nil
            // Each command starts the next agent.
            try courier("leave", url)
            try home.waitForQuiet()
            #expect(lines.filter { $0 == "complete left0 ok" }.count >= 3, "\(lines)")
        }

        /// Transfers end while the app is being launched, while it receives events, and while it exits. The end of each of
        /// these transfers is delivered.
        @Test func `transfers that end while the app exits are delivered`() throws {
            server.route("GET", "/soon", ResponseScript.status(200, body: "soon").after(.delay(0.2)))
            for _ in 0..<8 { try courier("leave", server.url + "/soon", "60") }
            try home.wait("all delivered") { transaction in
                return try transaction.undeliveredEvents().isEmpty && transaction.liveLaunches().isEmpty
                    && transaction.unfinishedTransfers().isEmpty ? true : nil
            }
            let history = try home.history().filter { !$0.hasSuffix("completed") }
            #expect(lines.filter { $0.hasPrefix("complete left") && $0.hasSuffix(" ok") }.count == 480, "\(history)\n\(home.log)")
            #expect(lines.filter { $0.hasPrefix("finish left") }.count == 480)
        }

        /// The handler returns while the delegate still processes a transfer that ended during this launch.
        @Test func `an end that the delegate handles last is delivered once`() throws {
            home.environment["COURIER_COUNT"] = "2"
            let url = serve()
            try courier("leave", url)
            try waitForLine("launched for courier")
            try courier("leave", url)
            try waitUntilAllIsDelivered()
            #expect(lines.filter { $0.hasPrefix("complete left") } == ["complete left0 ok", "complete left0 ok"])
        }

        /// The handler returns early. The launch continues until the delegate has received all events.
        @Test(arguments: [nil, "handler"], ["0", "1"])
        func `events are delivered if the handler returns early`(_ form: String?, _ count: String) throws {
            home.environment["COURIER_COUNT"] = count
            home.environment["COURIER_FORM"] = form
            try courier("leave", serve(), "4")
            try waitUntilAllIsDelivered()
            #expect(lines.filter { $0.hasPrefix("complete left") }.sorted() == (0..<4).map { "complete left\($0) ok" })
        }

        /// The process is killed after its handler has returned, while its delegate is still working. Events that were not
        /// acknowledged are delivered again.
        @Test func `events that the delegate did not acknowledge are delivered again`() throws {
            home.environment["COURIER_COUNT"] = "0"
            try courier("leave", serve(), "4")
            try waitForLine("complete left0 ok")
            let pid = try home.wait("the process") { try $0.liveLaunches().first?.pid }
            kill(pid, SIGKILL)
            try waitUntilAllIsDelivered()
            #expect(Set(lines.filter { $0.hasPrefix("complete left") }).count == 4, "\(lines)")
        }

        /// If the end of a transfer were delivered a second time, the next launch would begin the following transfers a second
        /// time.
        @Test func `an end counts as delivered if its last delegate method begins a transfer and the process ends`() throws {
            home.environment["COURIER_FOLLOW"] = "1"
            try courier("leave", serve(), "3")
            try waitUntilAllIsDelivered()
            let names = ["left0", "left1", "left2", "follow-up of left0", "follow-up of left1", "follow-up of left2"]
            #expect(lines.filter { $0.hasPrefix("complete") }.sorted() == names.map { "complete \($0) ok" }.sorted())
        }

        /// The delegate method that is still running may begin a transfer later.
        @Test func `an end whose delegate method still runs does not count when another thread begins a transfer`() throws {
            home.environment["COURIER_BESIDE"] = "1"
            try courier("leave", serve(), "1")
            try waitUntilAllIsDelivered()
            let completed = lines.filter { $0.hasPrefix("complete") }.sorted()
            #expect(completed == ["complete beside ok", "complete left0 ok", "complete left0 ok"])
        }

        /// The delegate kills each process that receives the end of the first transfer.
        @Test func `an end that crashes every process does not block the other ends`() throws {
            home.environment["COURIER_CRASH"] = "left0"
            try courier("leave", serve(), "4")
            try home.wait("one end is left") { transaction in
                try transaction.unfinishedTransfers().isEmpty && transaction.undeliveredEvents().count == 1 ? true : nil
            }
            #expect(Set(lines.filter { $0.hasPrefix("complete") }).count == 4)
            try courier("background", "quit")
        }

        /// The delegate never calls the completion handler for the response headers.
        @Test func `a delegate that never decides about a response receives it in the third launch`() throws {
            server.route("PUT", "/up", .status(201, body: "stored"))
            let photo = home.folder.appendingPathComponent("photo")
            try Self.file.data.write(to: photo)
            home.environment["COURIER_UNDECIDED"] = "1"
            home.environment["COURIER_FILE"] = photo.path
            try courier("leave", server.url + "/up", "1")
            for count in 1...2 {
                try home.wait("launch \(count)") { transaction in
                    let responses = lines.count { $0.hasPrefix("response left0") }
                    return try responses == count && !transaction.liveLaunches().isEmpty ? true : nil
                }
                #expect(try courier("background", "simulate", "expire", "courier").status == 0)
            }
            try waitUntilAllIsDelivered()
            #expect(lines.filter { $0.hasPrefix("complete") } == ["complete left0 ok"])
            #expect(server.requests(matching: "/up").count { $0.method == "PUT" } == 1)
        }

        /// The process of a launch ends half a second after its action has returned.
        @Test func `work that a scene action begins and does not await is kept`() throws {
            home.environment["COURIER_LATE"] = serve()
            try courier("leave", serve(), "1")
            try waitForLine("complete late ok")
        }

        /// A session without a handler receives events until its launch reaches its time limit. The next launch receives the
        /// events that were not delivered.
        @Test func `events that were handled before time was up are not delivered again`() throws {
            home.environment["COURIER_COUNT"] = "1"
            home.environment["COURIER_FORM"] = "delegate"
            try courier("leave", serve(), "5")
            try home.wait("two ends") { _ in lines.count { $0.hasPrefix("complete left") } > 1 ? true : nil }
            #expect(try courier("background", "simulate", "expire", "courier").status == 0)
            try waitUntilAllIsDelivered()
            // Concurrent downloads end in any order.
            #expect(lines.filter { $0.hasPrefix("complete left") }.sorted() == (0..<5).map { "complete left\($0) ok" })
        }

        /// The handler waits for all events and does not return when its time is up, so its process is killed. The next launch
        /// receives the events that were not delivered.
        @Test func `events that were received count if the launch is killed before it received all`() throws {
            home.environment["COURIER_SLOW"] = "1"
            try courier("leave", serve(), "5")
            try home.wait("two ends") { _ in lines.count { $0.hasPrefix("complete left") } > 1 ? true : nil }
            #expect(try courier("background", "simulate", "expire", "courier").status == 0)
            try waitUntilAllIsDelivered()
            #expect(lines.filter { $0.hasPrefix("complete left") }.sorted() == (0..<5).map { "complete left\($0) ok" })
            let outcomes = try Ledger(home.directories).read { try $0.history(limit: 10).map(\.outcome) }
            #expect(outcomes.contains(.killed))
        }

        private func waitUntilAllIsDelivered() throws {
            try home.wait("all delivered") { transaction in
                try transaction.undeliveredEvents().isEmpty && transaction.liveLaunches().isEmpty
                    && transaction.unfinishedTransfers().isEmpty ? true : nil
            }
        }

        /// While an app waits, the agent is killed. The app starts another agent.
        @Test func `an app that waits starts another agent if its agent is killed`() throws {
            let child = try begin("get", serveHalf())
            try waitForBytes()
            try home.killAgent()
            #expect(child.waitForEnd() == 0)
            #expect(lines.contains("finish get0 3000000"))
            let waiting = try begin("await", serveHalf("/other"))
            try home.wait("bytes of the second") { transaction in
                let all = try transaction.transfers()
                return all.count == 2 && all[1].bytesDone > 0 ? true : nil
            }
            try home.killAgent()
            server.route("PUT", "/other", .status(200, body: "stored"))
            #expect(waiting.waitForEnd() == 0)
            #expect(lines.contains("awaited 3000000 200"))
        }

        /// The app and its agent were killed. The user starts the app again.
        @Test func `a session of the next process starts an agent for the work that is left`() throws {
            try courier("leave", serveHalf())
            try waitForBytes()
            try home.killAgent()
            server.openGate("/half")
            try courier("list")
            try home.waitForEnded("urlSession")
            #expect(lines.contains("finish left0 3000000"), "\(lines)")
        }

        // MARK: Exiting

        /// The handler returned before the download had ended.
        @Test func `a launch continues while a download in its memory is under way`() throws {
            home.environment["COURIER_FORM"] = "application"
            home.environment["COURIER_EPISODE"] = serveHalf("/episode")
            try courier("leave", serve())
            try home.wait("the result") { try $0.liveLaunches().first { $0.result == .completed } }
            server.openGate("/episode")
            try waitForLine("episode 3000000")
            try home.waitForEnded("urlSession")
            try home.waitForQuiet()
            let launches = try Ledger(home.directories).read { try $0.history(limit: 100) }
            #expect(launches.count == 1 && launches.allSatisfy { $0.outcome == .completed })
            #expect(server.requests(matching: "/episode").count == 1)
        }

        private func prepareUploads(_ form: String) throws {
            server.route("PUT", "/up", .status(201))
            let photo = home.folder.appendingPathComponent("photo")
            try Self.file.data.write(to: photo)
            home.environment["COURIER_FORM"] = form
            home.environment["COURIER_URL"] = server.url + "/up"
            home.environment["COURIER_FILE"] = photo.path
        }

        /// The app begins transfers in a task, and nothing in the app reports that all transfers have begun.
        @Test func `transfers that an app begins in a task are queued before the app exits`() throws {
            try prepareUploads("begins")
            for _ in 0..<10 { #expect(try courier().status == 0) }
            try home.wait("the uploads") { transaction in
                try transaction.transfers().filter { $0.state == .completed }.count == 20 ? true : nil
            }
        }

        /// The app has no delegate to which the error could be reported.
        @Test func `an upload that cannot be queued is reported on standard error`() throws {
            try prepareUploads("begins")
            home.environment["COURIER_FILE"] = home.folder.appendingPathComponent("missing").path
            home.environment["COURIER_URL"] = server.url + "/up?signature=secret"
            let errors = try courier().errors.split(separator: "\n").filter { $0.contains("was not queued") }
            #expect(errors.count == 2 && errors.allSatisfy { $0.contains("\(server.url)/up was not queued: ") }, "\(errors)")
        }

        /// The exit handlers of libraries must not free data that another thread uses.
        @Test func `an app that calls exit beside a thread that hashes does not crash`() throws {
            try prepareUploads("exits")
            for _ in 0..<10 { #expect(try courier().status == 0) }
            #expect(try !Ledger(home.directories).read { try $0.transfers() }.isEmpty)
        }

        // MARK: Cancelling and resuming

        @Test func `resume data continues after the stored bytes`() throws {
            let url = serveHalf()
            try courier("break", url)
            #expect(lines.contains("resume data there"))
            #expect(lines.filter { $0.hasPrefix("complete") } == ["complete broken -999 with resume data"])
            let held = try #require(try Ledger(home.directories).read { try $0.transfers().first?.partial?.durableBytes })
            #expect(held > 0)
            try courier("mend")
            #expect(lines.contains("finish broken 3000000"))
            let requests = server.requests(matching: "/half")
            #expect(requests.count == 2)
            let range = try #require(requests.last?.headers["Range"])
            #expect(range == "bytes=\(held)-", "received bytes are not requested again: \(range)")
            // The resume data contains no path.
            let data = try Data(contentsOf: home.folder.appendingPathComponent("resume"))
            #expect(!String(decoding: data, as: UTF8.self).contains(home.folder.path))
        }

        /// The partial file can be used only once. The second task with the same resume data downloads the complete file. Both
        /// files are complete at the end.
        @Test func `resume data can be used twice`() throws {
            try courier("break", serveHalf())
            try courier("mend")
            try courier("mend")
            #expect(lines.filter { $0 == "finish broken 3000000" }.count == 2)
        }

        @Test(arguments: ["nothing", "cut short", "changed", "of another version"])
        func `invalid resume data is rejected`(_ fault: String) throws {
            let place = home.folder.appendingPathComponent("resume")
            try courier("break", serveHalf())
            var data = try Data(contentsOf: place)
            switch fault {
            case "nothing": data = Data()
            case "cut short": data.removeLast(3)
            case "changed": data[data.count - 20] ^= 1
            default: data[4] = 9
            }
            try data.write(to: place)
            try courier("mend")
            #expect(lines.last == "complete task -1002")
        }

        @Test func `a suspended task can be resumed in a later process`() throws {
            try courier("hold", serveHalf())
            #expect(lines.filter { $0.hasPrefix("state") } == ["state suspended", "state running", "state suspended"])
            let held = try home.wait("held") { transaction in
                try transaction.transfers().first.flatMap { $0.state == .queued ? $0.bytesDone : nil }
            }
            try courier("list")
            #expect(lines.contains("task held URLSessionDownloadTask suspended"))
            #expect(server.requests(matching: "/half").count == 1)
            try courier("go")
            #expect(lines.contains("finish held 3000000"))
            #expect(server.requests(matching: "/half").last?.headers["Range"] == "bytes=\(held)-")
        }

        @Test func `invalidating a session cancels the tasks of earlier processes`() throws {
            server.route("GET", "/stuck", .cutAfter(100_000, of: Self.file, etag: "\"v1\"", by: .stall))
            try courier("leave", server.url + "/stuck", "2")
            try waitForBytes()
            try courier("end")
            #expect(lines.filter { $0.hasPrefix("complete left") }.sorted() == ["complete left0 -999", "complete left1 -999"])
            try home.waitForQuiet()
            try home.waitForAgentExit()
            let spool = try FileManager.default.contentsOfDirectory(atPath: home.directories.spool.path)
            #expect(spool.isEmpty, "\(spool)")
        }

        @Test func `an earliest begin date delays the transfer`() throws {
            let url = serve()
            let before = Date()
            try courier("later", url)
            #expect(try Ledger(home.directories).read { try $0.transfers() }.first?.state == .waiting)
            try waitForLine("complete later ok")
            #expect(Date().timeIntervalSince(before) >= 2)
        }

        // MARK: Bodies and responses

        @Test func `an upload task receives its response`() throws {
            server.route("PUT", "/up", .status(201, body: "thank you"))
            server.route("PUT", "/no", .status(403, body: "no"))
            let photo = home.folder.appendingPathComponent("photo")
            try Self.file.data.write(to: photo)
            try courier("send", server.url + "/up", photo.path)
            #expect(
                lines.filter { $0.contains(" sent ") }
                    == ["response sent 201", "data sent thank you", "metrics sent 1", "complete sent ok"])
            // Each HTTP response completes the task, even if its status is an error.
            try courier("send", server.url + "/no", photo.path)
            #expect(lines.suffix(3).contains("complete sent ok"))
            #expect(lines.contains("response sent 403"))
            #expect(server.requests(matching: "/up").first?.bodyByteCount == 3_000_000)
        }

        @Test func `a data task sends its body and receives the response`() throws {
            server.route("POST", "/form", .status(200, body: "received"))
            try courier("post", server.url + "/form", "name=stormy")
            #expect(lines.contains("data posted received"))
            #expect(server.requests(matching: "/form").first?.bodyByteCount == 11)
        }

        /// Foundation has an identifier only for apps that are bundles. Code for iOS unwraps the identifier without a check.
        @Test func `an app knows its identifier`() throws {
            try courier("who")
            #expect(lines == ["courier-example 0"])
        }

        @Test func `async calls work on a background session`() throws {
            let url = serve()
            server.route("PUT", "/file", .status(200, body: "stored"))
            try courier("await", url)
            #expect(lines == ["awaited 3000000 200", "awaited file 3000000", "awaited upload stored"])
            try courier("handler", url)
            #expect(lines.last == "handler 3000000 200 true")
            try home.waitForQuiet()
            try home.waitForAgentExit()
            let spool = try FileManager.default.contentsOfDirectory(atPath: home.directories.spool.path)
            #expect(spool.isEmpty, "\(spool)")
        }

        /// The app cancels the `await` of a download. A task continues this download on the connection that the `await` used.
        /// The end of the download is delivered in a launch.
        @Test func `a download whose await was cancelled is continued by a task`() throws {
            let url = serveHalf()
            let pipe = try StepPipe(in: home.folder)
            let child = try Child(
                "/bin/sh", ["-c", "exec '\(Home.product("courier-example"))' drop '\(url)' < '\(pipe.path)'"],
                environment: home.environment)
            try waitForBytes()
            pipe.step()
            #expect(child.waitForEnd() == 0)
            #expect(lines == ["dropped -999"])
            server.openGate("/half")
            try waitForLine("complete dropped ok")
            #expect(lines.contains("finish dropped 3000000"))
            #expect(server.requests(matching: "/half").count == 1)
        }

        // MARK: Conditions

        @Test func `a discretionary transfer waits for external power`() throws {
            let system = try SystemServices()
            home.environment.merge(system.environment) { $1 }
            try system.set(.power, "OnBattery", "true")
            home.environment["COURIER_DISCRETIONARY"] = "1"
            let child = try begin("get", serve())
            try home.wait("an agent that knows") { try $0.fact(.conditions)?.conditions.isOnExternalPower == false ? true : nil }
            #expect(try Ledger(home.directories).read { try $0.transfers() }.first?.state == .queued)
            #expect(server.requests(matching: "/file").isEmpty)
            try system.set(.power, "OnBattery", "false")
            #expect(child.waitForEnd() == 0)
            #expect(lines.contains("complete get0 ok"))
        }

        /// If a condition of the transfer is no longer met, the transfer stops. The bytes that were received before the stop are
        /// kept.
        @Test func `a network that becomes metered stops a transfer without expensive access`() throws {
            let system = try SystemServices()
            home.environment.merge(system.environment) { $1 }
            try system.set(.network, "State", "uint32 70")
            home.environment["COURIER_CHEAP"] = "1"
            let child = try begin("get", serveHalf())
            try waitForBytes()
            try system.set(.network, "Metered", "uint32 3")
            let held = try home.wait("stopped") { transaction in
                try transaction.transfers().first.flatMap { $0.state == .queued ? $0.bytesDone : nil }
            }
            try system.set(.network, "Metered", "uint32 4")
            #expect(child.waitForEnd() == 0)
            #expect(lines.contains("finish get0 3000000"))
            #expect(server.requests(matching: "/half").dropFirst().first?.headers["Range"] == "bytes=\(held)-")
        }
    }
}
