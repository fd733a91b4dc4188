import BackgroundScenes
import Foundation

/// The commands of the app, which a user or a test runs in a terminal.
struct CourierCommands {
    private let delegate = CourierDelegate()
    private var session: URLSession {
        let configuration = URLSessionConfiguration.background(withIdentifier: "courier")
        let environment = ProcessInfo.processInfo.environment
        configuration.isDiscretionary = environment["COURIER_DISCRETIONARY"] != nil
        configuration.sessionSendsLaunchEvents = environment["COURIER_QUIET"] == nil
        configuration.allowsExpensiveNetworkAccess = environment["COURIER_CHEAP"] == nil
        if let count = environment["COURIER_CONNECTIONS"].flatMap(Int.init) {
            configuration.httpMaximumConnectionsPerHost = count
        }
        return URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
    }

    func run(_ words: [String]) async {
        let words = Array(words)
        let address = words.dropFirst().first.flatMap(URL.init(string:))
        do {
            switch (words.first, address) {
            case ("get", _?): await begin(words)
            case ("leave", let url?): beginOnly(url, count: Int(words.dropFirst(2).first ?? "") ?? 1)
            case ("later", let url?): later(url)
            case ("break", let url?): await breakOff(url)
            case ("mend", _): await resumeBroken()
            case ("hold", let url?): await keepOpen(url)
            case ("list", _): await list()
            case ("who", _):
                log("\(Bundle.main.bundleIdentifier!) \(Bundle.main.infoDictionary?["CFBundleShortVersionString"] ?? "")")
            case ("started", _): logStart()
            case ("go", _): await continueWork()
            case ("end", _): await end()
            case ("send", let url?): await send(url, URL(fileURLWithPath: words[2]))
            case ("post", let url?): await post(url, words[2])
            case ("await", let url?): try await awaitAnswer(url)
            case ("handler", let url?): await withHandler(url)
            case ("ask", _?): try await request(words.dropFirst().compactMap(URL.init(string:)))
            case ("drop", let url?): try await drop(url)
            default:
                print(
                    "usage: courier-example get|leave|later|break|hold|send|post|await|handler|ask|drop URL … | mend | list | who | started | go | end"
                )
            }
        } catch {
            log("error \((error as? URLError)?.code.rawValue ?? 0)")
        }
    }

    /// Begins a download of each address, and waits until all downloads are complete. If an address occurs twice in the
    /// arguments, two tasks are created.
    private func begin(_ words: [String]) async {
        let session = session
        let tasks = words.dropFirst().compactMap(URL.init(string:)).map { session.downloadTask(with: $0) }
        for (index, task) in tasks.enumerated() { task.taskDescription = "get\(index)" }
        // Starts all tasks in one durable commit.
        session.resume(tasks)
        await delegate.completions(tasks.count)
        session.finishTasksAndInvalidate()
    }

    /// Begins `count` downloads without a delegate, and does not wait for them.
    private func beginOnly(_ url: URL, count: Int) {
        let configuration = URLSessionConfiguration.background(withIdentifier: "courier")
        let environment = ProcessInfo.processInfo.environment
        configuration.sessionSendsLaunchEvents = environment["COURIER_QUIET"] == nil
        configuration.httpMaximumConnectionsPerHost = 16
        let session = URLSession(configuration: configuration)
        for number in 0..<count {
            let task: URLSessionTask
            if let file = environment["COURIER_FILE"] {
                task = session.uploadTask(with: URLRequest(url: url), fromFile: URL(fileURLWithPath: file))
            } else {
                task = session.downloadTask(with: url)
            }
            task.taskDescription = "left\(number)"
            task.resume()
        }
    }

    private func later(_ url: URL) {
        let task = URLSession(configuration: .background(withIdentifier: "courier")).downloadTask(with: url)
        task.taskDescription = "later"
        task.earliestBeginDate = Date().addingTimeInterval(2)
        task.resume()
    }

    /// Cancels a download after its first bytes, and keeps the resume data.
    private func breakOff(_ url: URL) async {
        let task = session.downloadTask(with: url)
        task.taskDescription = "broken"
        task.resume()
        await delegate.firstBytes()
        let data = await task.cancelByProducingResumeData()
        log("resume data \(data == nil ? "none" : "there")")
        if let data { delegate.store(resumeData: data) }
        await delegate.completions(1)
    }

    private func resumeBroken() async {
        let data = (try? Data(contentsOf: CourierDelegate.folder.appendingPathComponent("resume"))) ?? Data()
        let task = session.downloadTask(withResumeData: data)
        task.resume()
        await delegate.completions(1)
    }

    private func keepOpen(_ url: URL) async {
        let task = session.downloadTask(with: url)
        task.taskDescription = "held"
        log("state \(task.state)")
        task.resume()
        log("state \(task.state)")
        await delegate.firstBytes()
        task.suspend()
        log("state \(task.state)")
    }

    private func list() async {
        for task in await session.allTasks {
            log("task \(task.taskDescription ?? "") \(type(of: task)) \(task.state)")
        }
    }

    /// Resumes the tasks that an earlier process suspended, and waits until they are complete.
    private func continueWork() async {
        let tasks = await session.allTasks
        for task in tasks { task.resume() }
        await delegate.completions(tasks.count)
    }

    private func end() async {
        let session = session
        let count = await session.allTasks.count
        session.invalidateAndCancel()
        await delegate.completions(count)
    }

    private func send(_ url: URL, _ file: URL) async {
        let task = session.uploadTask(with: URLRequest(url: url), fromFile: file)
        task.taskDescription = "sent"
        task.resume()
        await delegate.completions(1)
    }

    private func post(_ url: URL, _ body: String) async {
        var request = URLRequest(url: url)
        request.httpMethod = "POST"
        request.httpBody = Data(body.utf8)
        let task = session.dataTask(with: request)
        task.taskDescription = "posted"
        task.resume()
        await delegate.completions(1)
    }

    private func awaitAnswer(_ url: URL) async throws {
        let session = URLSession(configuration: .background(withIdentifier: "courier"))
        let (data, response) = try await session.data(from: url)
        log("awaited \(data.count) \((response as? HTTPURLResponse)?.statusCode ?? 0)")
        let (file, _) = try await session.download(from: url)
        log("awaited file \(try Data(contentsOf: file).count)")
        try FileManager.default.removeItem(at: file)
        let (answer, _) = try await session.upload(for: URLRequest(url: url), from: Data("body".utf8))
        log("awaited upload \(String(decoding: answer, as: UTF8.self))")
    }

    private func withHandler(_ url: URL) async {
        let session = URLSession(configuration: .background(withIdentifier: "courier"))
        await withCheckedContinuation { continuation in
            let task = session.dataTask(with: url) { data, response, error in
                log("handler \(data?.count ?? -1) \((response as? HTTPURLResponse)?.statusCode ?? 0) \(error == nil)")
                continuation.resume()
            }
            task.resume()
        }
    }

    /// Requests the addresses in an ordinary session, which does not use the agent.
    private func request(_ addresses: [URL]) async throws {
        for url in addresses {
            let (data, response) = try await URLSession.shared.data(from: url)
            log("answer \((response as? HTTPURLResponse)?.statusCode ?? 0) \(String(decoding: data, as: UTF8.self))")
        }
    }

    /// Cancels a download that the app waits for. A task with an equal request then continues the download in the agent after the
    /// app exits.
    private func drop(_ url: URL) async throws {
        let session = URLSession(configuration: .background(withIdentifier: "courier"))
        let work = Task {
            try await withTaskCancellationHandler {
                try await session.download(from: url)
            } onCancel: {
                let task = session.downloadTask(with: url)
                task.taskDescription = "dropped"
                task.resume()
            }
        }
        // The test writes a line to standard input when the app has to cancel the download.
        _ = readLine()
        work.cancel()
        do { _ = try await work.value } catch { log("dropped \((error as? URLError)?.code.rawValue ?? 0)") }
    }
}
