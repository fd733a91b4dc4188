import BackgroundLedger
import BackgroundRuntime
import Foundation
import FoundationNetworking
import Spool
import TransferMachines

/// What a server says, later, of a file that was uploaded to it. Beyond Apple.
public enum UploadFinding: Sendable, Equatable {
    /// Read back, byte for byte what was sent.
    case same
    /// The server's record of the file's digest is the digest of what was sent. The bytes were not read back.
    case sameRecord
    /// The server's record of the file's length is the length of what was sent. The bytes were not read back.
    case sameLength
    case differs
    case gone
    /// Its protocol, or its server, has no such question; and why.
    case unknown(String)
    /// Nobody answered, or not to us; and why.
    case unreachable(String)
}

extension BackgroundTransfers {
    /// Asks the server of an upload whether it still has what was sent. Where its protocol allows, the file is downloaded and compared by digest:
    /// nothing less proves it. An Immich that does not send the original is asked for its record of the SHA-1. What is found is written into the upload's receipt.
    ///
    /// Cost: a download of the file, into a temporary one.
    ///
    /// - Parameters:
    ///   - id: of an upload with a receipt.
    ///   - credential: what opens the server's door; used only where the receipt names the server that was configured.
    /// - Throws: when the ledger cannot be read or written. Trouble with the server is a finding.
    public static func verifyUpload(_ id: Int64, credential: Credential? = nil) async throws -> UploadFinding {
        let found = try AppRuntime.shared.ledger().read { transaction in
            try transaction.transfer(id).map { ($0, try transaction.fact(.server(of: $0))?.region) }
        }
        guard let (upload, region) = found, let receipt = upload.receipt else { return .unknown("it was not uploaded") }
        let question = UploadQuestion(upload: upload, receipt: receipt, credential: credential, region: region)
        let finding = try await question.ask()
        try record(finding, id)
        return finding
    }

    private static func record(_ finding: UploadFinding, _ id: Int64) throws {
        let now = AppRuntime.shared.now
        switch finding {
        case .differs, .gone, .unknown, .unreachable: return
        case .same, .sameRecord, .sameLength: break
        }
        try AppRuntime.shared.ledger().write { transaction in
            try transaction.uploadWasChecked(id, proof: finding == .same ? .digest : nil, now: now)
        }
    }
}

/// One question to one server.
private struct UploadQuestion {
    let upload: TransferRecord
    let receipt: UploadReceipt
    let credential: BackgroundTransfers.Credential?
    let region: String?

    func ask() async throws -> UploadFinding {
        guard let url = URL(string: receipt.url), let method = upload.upload?.method else { return .unknown("no address") }
        // Only where the password belongs: a server may have put it at another one.
        let isAtHome = URL(string: upload.url).map(RedirectRule.origin) == RedirectRule.origin(of: url)
        let opener = isAtHome ? credential : nil
        switch method.laterQuestion(asked: upload.url, stored: receipt.url) {
        case .file: return try await readBack(request(url, opener))
        case .signedFile:
            guard credential?.s3 != nil else { return .unknown("its destination is not configured any more") }
            return try await readBack(request(url, opener))
        case .immichAsset: return try await askImmich(at: url, opener)
        case .offset: return try await askForOffset(request(url, opener))
        case .nothing(let why): return .unknown(why)
        }
    }

    private func request(_ url: URL, _ credential: BackgroundTransfers.Credential?) -> URLRequest {
        var request = URLRequest(url: url)
        if var access = credential?.s3 {
            access.region = region ?? access.region
            var question = WireRequest(method: "GET", url: url.absoluteString)
            question.signing = S3Signing(access)
            for field in question.signed(at: AppRuntime.shared.now, hashing: CryptoHashing()).headers {
                request.setValue(field.value, forHTTPHeaderField: field.name)
            }
        }
        if let header = credential?.header { request.setValue(header.value, forHTTPHeaderField: header.name) }
        return request
    }

    /// Reads the original back. If Immich does not send it, because the key lacks the permission for example, its record decides.
    private func askImmich(at url: URL, _ opener: BackgroundTransfers.Credential?) async throws -> UploadFinding {
        // The site can have a path. The receipt is for SITE/photos/ID.
        let site = url.deletingLastPathComponent().deletingLastPathComponent()
        let original = site.appendingPathComponent("api/assets/\(url.lastPathComponent)/original")
        let finding = try await readBack(request(original, opener))
        switch finding {
        case .same, .sameRecord, .sameLength, .differs: return finding
        case .gone, .unreachable, .unknown: break
        }
        guard let sha1 = upload.upload?.sha1 else { return finding }
        var question = request(site.appendingPathComponent(String(ImmichRecord.path.dropFirst())), opener)
        (question.httpMethod, question.httpBody) = ("POST", ImmichRecord.question(sha1: sha1))
        question.setValue("application/json", forHTTPHeaderField: "Content-Type")
        guard let (body, response) = try? await URLSession(configuration: configuration).data(for: question),
            (response as? HTTPURLResponse)?.statusCode == 200
        else { return finding }
        switch ImmichRecord.finding(body) {
        case .there: return .sameRecord
        case .absent: return .gone
        case .trashed: return .unknown("Immich has it in its trash; restore it there")
        case .refused, nil: return finding
        }
    }

    private func readBack(_ request: URLRequest) async throws -> UploadFinding {
        do {
            let session = URLSession(configuration: configuration)
            let (file, response) = try await session.download(for: request)
            defer { try? FileManager.default.removeItem(at: file) }
            switch (response as? HTTPURLResponse)?.statusCode ?? 0 {
            case 200:
                let found = try FileDigest.sha256(of: file)
                if found.digest == receipt.sha256 { return .same }
                // What a network shows before somebody logs in proves nothing against the file.
                if response.mimeType?.lowercased() == "text/html" {
                    return .unreachable("there is a page in its place: it wants somebody to log in, perhaps")
                }
                // A form's page may be anything.
                return upload.upload?.method == .multipart ? .unknown("the server shows something else there") : .differs
            case 404, 410:
                // Another address knows nothing of it: a page to log in, or a server that moved.
                return Self.isAnswer(response, of: request) ? .gone : .unreachable("the server led on to another address")
            case 401, 403: return .unreachable("the server does not let us read it")
            case 405: return .unknown("the server lets nobody read it")
            case let status: return .unreachable("the server answered with status \(status)")
            }
        } catch let error as URLError where error.code == .dataLengthExceedsMaximum {
            return .differs
        } catch let error as URLError {
            return .unreachable(error.localizedDescription)
        }
    }

    private static func isAnswer(_ response: URLResponse, of request: URLRequest) -> Bool {
        guard let asked = request.url, let answered = response.url else { return true }
        return RedirectRule.origin(of: asked) == RedirectRule.origin(of: answered) && asked.path == answered.path
    }

    /// However the answer drips and however long it is, the question ends.
    private var configuration: URLSessionConfiguration {
        let configuration = URLSessionConfiguration.ephemeral
        // What the server has now, and nobody's memory of it.
        (configuration.urlCache, configuration.requestCachePolicy) = (nil, .reloadIgnoringLocalAndRemoteCacheData)
        // Foundation makes a folder for cookies.
        configuration.httpCookieStorage = nil
        configuration.timeoutIntervalForResource = 60 + Double(receipt.byteCount) / Self.leastRate
        // The digest is of the bytes that were sent, whatever the server calls them.
        configuration.keepsCoding = true
        // A log-in page in the place of a small photo is still looked at.
        configuration.maximumBodyBytes = max(receipt.byteCount, 1 << 20)
        configuration.authorityFile = (credential?.server ?? upload.upload?.server)?.authorityFile
        return configuration
    }

    /// Bytes a second.
    private static let leastRate = 10_000.0

    private func askForOffset(_ request: URLRequest) async throws -> UploadFinding {
        var request = request
        request.httpMethod = "HEAD"
        request.setValue("1.0.0", forHTTPHeaderField: "Tus-Resumable")
        do {
            let (_, response) = try await URLSession(configuration: configuration).data(for: request)
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
}
