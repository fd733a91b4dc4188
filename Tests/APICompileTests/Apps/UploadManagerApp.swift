// Uploads photos as forms. The bodies are written to files, because background sessions upload only files. The code was written
// for iOS, and only its imports were changed.
import BackgroundTransfer

struct MultipartFormWriter {
    let boundary: String

    init(boundary: String = "Boundary-\(UUID().uuidString)") { self.boundary = boundary }

    var contentType: String { "multipart/form-data; boundary=\(boundary)" }

    /// Streams the file into the body, so that a video is never completely in memory.
    func write(file: URL, fieldName: String, mimeType: String, parameters: [String: String], to body: URL) throws {
        guard let output = OutputStream(url: body, append: false) else { throw CocoaError(.fileWriteUnknown) }
        output.open()
        defer { output.close() }
        for (name, value) in parameters.sorted(by: { $0.key < $1.key }) {
            try output.write("--\(boundary)\r\nContent-Disposition: form-data; name=\"\(name)\"\r\n\r\n\(value)\r\n")
        }
        try output.write("--\(boundary)\r\n")
        try output.write("Content-Disposition: form-data; name=\"\(fieldName)\"; filename=\"\(file.lastPathComponent)\"\r\n")
        try output.write("Content-Type: \(mimeType)\r\n\r\n")
        guard let input = InputStream(url: file) else { throw CocoaError(.fileReadNoSuchFile) }
        input.open()
        defer { input.close() }
        var buffer = [UInt8](repeating: 0, count: 64 * 1024)
        while input.hasBytesAvailable {
            let count = input.read(&buffer, maxLength: buffer.count)
            guard count >= 0 else { throw input.streamError ?? CocoaError(.fileReadUnknown) }
            if count == 0 { break }
            try output.write(buffer[..<count])
        }
        try output.write("\r\n--\(boundary)--\r\n")
    }
}

extension OutputStream {
    func write(_ string: String) throws { try write(Array(string.utf8)[...]) }

    func write(_ bytes: ArraySlice<UInt8>) throws {
        var rest = bytes
        while !rest.isEmpty {
            let written = rest.withUnsafeBufferPointer { write($0.baseAddress!, maxLength: $0.count) }
            guard written > 0 else { throw streamError ?? CocoaError(.fileWriteUnknown) }
            rest = rest.dropFirst(written)
        }
    }
}

struct PhotoUpload: Codable, Sendable, Identifiable {
    enum State: Codable, Sendable, Equatable {
        case uploading(Double)
        case finished(location: String?)
        case failed(String)
    }

    let id: UUID
    let bodyFile: URL
    var state: State
}

@MainActor
final class PhotoUploadManager: NSObject {
    static let sessionIdentifier = "com.example.photos.background-upload"

    private(set) var uploads: [UUID: PhotoUpload] = [:]
    var onFinish: ((PhotoUpload) -> Void)?
    private var savedCompletionHandler: (() -> Void)?
    private var responses: [Int: Data] = [:]

    private let endpoint: URL
    private let folder: URL
    private var session: URLSession!

    init(endpoint: URL, folder: URL = FileManager.default.temporaryDirectory) {
        self.endpoint = endpoint
        self.folder = folder
        super.init()
        let configuration = URLSessionConfiguration.background(withIdentifier: Self.sessionIdentifier)
        configuration.sessionSendsLaunchEvents = true
        configuration.isDiscretionary = false
        configuration.sharedContainerIdentifier = "group.com.example.photos"
        configuration.timeoutIntervalForResource = 24 * 60 * 60
        session = URLSession(configuration: configuration, delegate: self, delegateQueue: .main)
    }

    func handleEventsForBackgroundURLSession(identifier: String, completionHandler: @escaping () -> Void) {
        guard identifier == Self.sessionIdentifier else { return completionHandler() }
        savedCompletionHandler = completionHandler
    }

    /// Restores the uploads that were running when the app was ended.
    func reconnect() async {
        let (_, uploadTasks, _) = await session.tasks
        for task in uploadTasks {
            guard let upload = Self.upload(of: task) else { continue }
            uploads[upload.id] = upload
            if task.state == .suspended { task.resume() }
        }
    }

    @discardableResult
    func upload(photo: URL, album: String) throws -> PhotoUpload {
        let id = UUID()
        let writer = MultipartFormWriter()
        let body = folder.appendingPathComponent("\(id.uuidString).multipart")
        try writer.write(
            file: photo, fieldName: "assetData", mimeType: "image/jpeg", parameters: ["album": album, "deviceId": "iPhone"],
            to: body)

        var request = URLRequest(url: endpoint)
        request.httpMethod = "POST"
        request.setValue(writer.contentType, forHTTPHeaderField: "Content-Type")
        request.addValue("application/json", forHTTPHeaderField: "Accept")

        let upload = PhotoUpload(id: id, bodyFile: body, state: .uploading(0))
        let task = session.uploadTask(with: request, fromFile: body)
        task.taskDescription = String(decoding: try JSONEncoder().encode(upload), as: UTF8.self)
        task.countOfBytesClientExpectsToSend = Int64(try body.resourceValues(forKeys: [.fileSizeKey]).fileSize ?? 0)
        task.earliestBeginDate = nil
        uploads[id] = upload
        task.resume()
        return upload
    }

    private static func upload(of task: URLSessionTask) -> PhotoUpload? {
        task.taskDescription.flatMap { try? JSONDecoder().decode(PhotoUpload.self, from: Data($0.utf8)) }
    }

    private func finish(_ task: URLSessionTask, _ error: Error?) {
        guard var upload = Self.upload(of: task) else { return }
        let status = (task.response as? HTTPURLResponse)?.statusCode ?? 0
        if let error = error as? URLError {
            upload.state = .failed(error.localizedDescription)
        } else if let error {
            upload.state = .failed("\(error)")
        } else if (200..<300).contains(status) {
            upload.state = .finished(location: (task.response as? HTTPURLResponse)?.value(forHTTPHeaderField: "Location"))
        } else {
            let message = responses[task.taskIdentifier].flatMap { String(data: $0, encoding: .utf8) }
            upload.state = .failed("\(HTTPURLResponse.localizedString(forStatusCode: status)): \(message ?? "")")
        }
        responses[task.taskIdentifier] = nil
        uploads[upload.id] = upload
        try? FileManager.default.removeItem(at: upload.bodyFile)
        onFinish?(upload)
    }
}

// The delegate queue is the main queue.
extension PhotoUploadManager: URLSessionDataDelegate {
    nonisolated func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        MainActor.assumeIsolated {
            guard let id = Self.upload(of: task)?.id else { return }
            uploads[id]?.state = .uploading(Double(totalBytesSent) / Double(totalBytesExpectedToSend))
        }
    }

    nonisolated func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        MainActor.assumeIsolated { responses[dataTask.taskIdentifier, default: Data()].append(data) }
    }

    nonisolated func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: Error?) {
        MainActor.assumeIsolated { finish(task, error) }
    }

    nonisolated func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {
        MainActor.assumeIsolated {
            let completionHandler = savedCompletionHandler
            savedCompletionHandler = nil
            completionHandler?()
        }
    }
}
