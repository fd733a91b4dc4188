import Spool
import ArgumentParser
import BackgroundCommands
import BackgroundLedger
import BackgroundRuntime
import BackgroundTransfer
import Foundation
import Stormy
import TransferMachines

/// Asks servers again whether they have what was uploaded to them.
struct UploadVerification {
    enum Finding: Equatable {
        /// Read back, byte for byte what was sent.
        case same
        /// It says that it has so many bytes.
        case sameLength
        case differs
        case gone
        /// Its protocol, or its server, has no such question.
        case unknown(String)
        case unreachable(String)

        var words: String {
            switch self {
            case .same: "is what was sent (read back)"
            case .sameLength: "is there, and as long as what was sent"
            case .differs: "is NOT what was sent"
            case .gone: "is GONE from the server; upload it again"
            case .unknown(let why): "cannot be checked: \(why)"
            case .unreachable(let why): "could not be checked now: \(why)"
            }
        }

        /// For scripts.
        var name: String {
            switch self {
            case .same: "same"
            case .sameLength: "sameLength"
            case .differs: "differs"
            case .gone: "gone"
            case .unknown: "unknown"
            case .unreachable: "unreachable"
            }
        }
    }

    private struct Report: Encodable {
        let id: String
        let file: OrNull<String>
        let url: String
        let finding: String
        let detail: String
    }

    let store: StormyStore
    private let session = URLSession(configuration: .ephemeral)

    init(store: StormyStore) { self.store = store }

    /// - Parameter files: those to look at; none: all.
    func run(_ files: [String], json: Bool) async throws {
        let wanted = Set(files.map { URL(fileURLWithPath: $0).standardizedFileURL.path })
        let uploads = try AppRuntime.shared.ledger().read { transaction in
            try transaction.transfers().filter { transfer in
                transfer.receipt != nil && (wanted.isEmpty || wanted.contains(transfer.sourceName ?? ""))
            }
        }
        let missing = wanted.subtracting(uploads.compactMap(\.sourceName))
        for path in missing.sorted() {
            Output.note("stormy: \(path): was not uploaded, as far as is known here")
        }
        guard !uploads.isEmpty else {
            throw CommandFailure(.notFound, wanted.isEmpty ? "nothing was uploaded yet" : "none of these was uploaded")
        }
        let (destinations, photos) = (try Destinations(), try store.photos())
        var reports: [Report] = []
        var isWhole = true
        for upload in uploads {
            guard let receipt = upload.receipt else { continue }
            var finding: Finding
            do {
                finding = try await look(upload, receipt, try destinations.of(upload, photos))
            } catch {
                // The others are looked at all the same.
                finding = .unreachable(CommandFailure(ofStormy: error).message)
            }
            // A form's page may be anything.
            if finding == .differs, upload.upload?.method == .multipart {
                finding = .unknown("the server shows something else there")
            }
            try note(finding, upload, receipt)
            let name = upload.sourceName.map { URL(fileURLWithPath: $0).lastPathComponent } ?? receipt.url
            let line = "\(name): \(finding.words) (\(receipt.url))".replacingOccurrences(of: "\n", with: " ")
            if !json { Output.line(line) }
            reports.append(
                Report(
                    id: "\(upload.id ?? 0)", file: OrNull(upload.sourceName), url: receipt.url, finding: finding.name,
                    detail: finding.words))
            if ![.same, .sameLength].contains(finding) { isWhole = false }
        }
        if json { try Output.json(reports) }
        if !isWhole || !missing.isEmpty {
            throw ExitCode(ExitStatus.unavailable.rawValue)
        }
    }

    private func look(
        _ upload: TransferRecord, _ receipt: UploadReceipt, _ destination: PhotoDestination?
    ) async throws -> Finding {
        guard let url = URL(string: receipt.url), let method = upload.upload?.method else { return .unknown("no address") }
        // Only where the password belongs: a server may have put it at another one.
        let isAtHome = URL(string: upload.url).map(RedirectRule.origin) == RedirectRule.origin(of: url)
        let opener = isAtHome ? destination : nil
        switch method.laterQuestion(asked: upload.url, stored: receipt.url) {
        case .file: return try await readBack(Self.request(url, opener), receipt)
        case .signedFile:
            guard destination?.way.s3 != nil else { return .unknown("its destination is not configured any more") }
            let region = try AppRuntime.shared.ledger().read { try $0.fact(.server(of: upload))?.region }
            return try await readBack(Self.request(url, opener, region), receipt)
        case .fileAt(let path):
            let place = path.replacing("ID", with: url.lastPathComponent)
            guard let file = URL(string: place, relativeTo: url)?.absoluteURL else { return .unknown("no address") }
            return try await readBack(Self.request(file, opener), receipt)
        case .offset: return try await askForOffset(Self.request(url, opener), receipt)
        case .nothing(let why): return .unknown(why)
        }
    }

    private static func request(_ url: URL, _ destination: PhotoDestination?, _ region: String? = nil) -> URLRequest {
        var request = URLRequest(url: url)
        if var access = destination?.way.s3 {
            access.region = region ?? access.region
            var question = WireRequest(method: "GET", url: url.absoluteString)
            question.signing = S3Signing(access)
            for field in question.signed(at: AppRuntime.shared.now, hashing: CryptoHashing()).headers {
                request.setValue(field.value, forHTTPHeaderField: field.name)
            }
        }
        if let credential = destination?.credential {
            request.setValue(credential.value, forHTTPHeaderField: credential.header)
        }
        return request
    }

    /// Downloads it and compares digests: nothing less proves it.
    private func readBack(_ request: URLRequest, _ receipt: UploadReceipt) async throws -> Finding {
        do {
            let (file, response) = try await session.download(for: request)
            defer { try? FileManager.default.removeItem(at: file) }
            switch (response as? HTTPURLResponse)?.statusCode ?? 0 {
            case 200:
                let found = try FileDigest.sha256(of: file)
                if found.digest == receipt.sha256 { return .same }
                // What a network shows before somebody logs in proves nothing against the photo.
                let isPage = response.mimeType?.lowercased() == "text/html"
                return isPage ? .unreachable("there is a page in its place: it wants somebody to log in, perhaps") : .differs
            case 404, 410: return .gone
            case 401, 403: return .unreachable("the server does not let us read it")
            case 405: return .unknown("the server lets nobody read it")
            case let status: return .unreachable("the server answered with status \(status)")
            }
        } catch let error as URLError {
            return .unreachable(error.localizedDescription)
        }
    }

    private func askForOffset(_ request: URLRequest, _ receipt: UploadReceipt) async throws -> Finding {
        var request = request
        request.httpMethod = "HEAD"
        request.setValue("1.0.0", forHTTPHeaderField: "Tus-Resumable")
        do {
            let (_, response) = try await session.data(for: request)
            let answer = response as? HTTPURLResponse
            switch answer?.statusCode ?? 0 {
            case 200..<300:
                return answer?.value(forHTTPHeaderField: "Upload-Offset") == "\(receipt.byteCount)" ? .sameLength : .differs
            case 404, 410: return .unknown("the server has taken it from where it was uploaded to")
            case let status: return .unreachable("the server answered with status \(status)")
            }
        } catch let error as URLError {
            return .unreachable(error.localizedDescription)
        }
    }

    /// A receipt that was proven says so; a photo that is gone can be uploaded again.
    private func note(_ finding: Finding, _ upload: TransferRecord, _ receipt: UploadReceipt) throws {
        var receipt = receipt
        switch finding {
        case .same: (receipt.proof, receipt.checkedAt) = (.digest, AppRuntime.shared.now)
        case .sameLength: receipt.checkedAt = AppRuntime.shared.now
        case .gone, .differs:
            if let label = PhotoUploads.Label(parsing: upload.taskDescription), let id = upload.id {
                try store.photoWasLost(label.photo, transfer: id, message: finding.words)
            }
            return
        case .unknown, .unreachable: return
        }
        let proven = receipt
        try AppRuntime.shared.ledger().write { transaction in
            guard var row = try upload.id.flatMap({ try transaction.transfer($0) }) else { return }
            row.receipt = proven
            try transaction.update(row)
        }
    }
}
