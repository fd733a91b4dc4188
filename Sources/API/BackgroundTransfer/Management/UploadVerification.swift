import BackgroundLedger
import BackgroundRuntime
import Foundation
import FoundationNetworking
import Spool
import TransferMachines

/// The result of a later check of an uploaded file on its server. Apple's API has no equivalent.
public enum UploadFinding: Sendable, Equatable {
    /// The file was read back and is equal to the sent data.
    case same
    /// The server's recorded digest of the file is equal to the digest of the sent data. The bytes were not read back.
    case sameRecord
    /// The server's recorded length of the file is equal to the length of the sent data. The bytes were not read back.
    case sameLength
    case differs
    case gone
    /// The protocol or the server does not support a check. The text contains the reason.
    case unknown(String)
    /// The server did not respond, or refused the request. The text contains the reason.
    case unreachable(String)
}

extension BackgroundTransfers {
    /// Checks whether the server of an upload still has the sent file. If the protocol permits a download, the file is downloaded
    /// and its digest is compared, because only the content is a proof. If an Immich server does not send the original file, the
    /// SHA-1 in the server's database is compared. A positive result is written to the upload's receipt.
    ///
    /// Cost: the file is downloaded into a temporary file.
    ///
    /// - Parameters:
    ///   - id: the number of an upload with a receipt.
    ///   - credential: the credentials of the server. The credentials are sent only if the address in the receipt belongs to the
    ///     configured server.
    /// - Throws: an error if the ledger cannot be read or written. An error of the server is a result (``UploadFinding``), and is
    ///   not thrown.
    public static func verifyUpload(_ id: Int64, credential: Credential? = nil) async throws -> UploadFinding {
        guard let check = try UploadCheck(id, credential) else { return .unknown("the file was not uploaded") }
        let finding = try await check.query()
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

/// Checks whether one uploaded file is still on its server and is unchanged.
struct UploadCheck {
    let upload: TransferRecord
    let receipt: UploadReceipt
    let credential: BackgroundTransfers.Credential?
    let region: String?

    /// Reads an upload. Returns `nil` if the upload has no receipt.
    init?(_ id: Int64, _ credential: BackgroundTransfers.Credential?) throws {
        let found = try AppRuntime.shared.ledger().read { transaction in
            try transaction.transfer(id).map { ($0, try transaction.fact(.server(of: $0))?.region) }
        }
        guard let (upload, region) = found, let receipt = upload.receipt else { return nil }
        (self.upload, self.receipt, self.credential, self.region) = (upload, receipt, credential, region)
    }

    /// The credentials for an address. The receipt may contain an address on another server. The credentials are sent only to the
    /// server of the upload.
    func opener(of url: URL) -> BackgroundTransfers.Credential? {
        URL(string: upload.url).map(RedirectRule.origin) == RedirectRule.origin(of: url) ? credential : nil
    }

    /// The address of the Immich site, which can contain a path. The address in the receipt is SITE/photos/ID.
    static func immichSite(of url: URL) -> URL { url.deletingLastPathComponent().deletingLastPathComponent() }

    func query() async throws -> UploadFinding {
        guard let url = URL(string: receipt.url), let method = upload.upload?.method else {
            return .unknown("the address of the file is not recorded")
        }
        let opener = opener(of: url)
        switch method.laterQuestion(asked: upload.url, stored: receipt.url) {
        case .file: return try await readBack(request(url, opener))
        case .signedFile:
            guard credential?.s3 != nil else { return .unknown("the destination is not configured any more") }
            let (finding, response) = try await read(request(url, opener))
            guard case .unreachable = finding, let skew = clockSkew(of: response) else { return finding }
            return try await readBack(request(url, opener, clockSkew: skew))
        case .immichAsset: return try await askImmich(at: url, opener)
        case .offset: return try await askForOffset(request(url, opener))
        case .nothing(let why): return .unknown(why)
        }
    }

    /// - Parameter clockSkew: The seconds by which the clock of the server is ahead.
    func request(
        _ url: URL, _ credential: BackgroundTransfers.Credential?, _ method: String = "GET", clockSkew: Double = 0
    ) -> URLRequest {
        var request = URLRequest(url: url)
        request.httpMethod = method
        if var access = credential?.s3 {
            access.region = region ?? access.region
            var question = WireRequest(method: method, url: url.absoluteString)
            question.signing = S3Signing(access, clockSkew: clockSkew)
            for field in question.signed(at: AppRuntime.shared.now, hashing: CryptoHashing()).headers {
                request.setValue(field.value, forHTTPHeaderField: field.name)
            }
        }
        if let header = credential?.header { request.setValue(header.value, forHTTPHeaderField: header.name) }
        return request
    }

    /// Downloads the original photo from Immich and compares it with the uploaded file. If Immich does not send the photo, for
    /// example because the API key has no permission, compares the SHA-1 that Immich recorded.
    private func askImmich(at url: URL, _ opener: BackgroundTransfers.Credential?) async throws -> UploadFinding {
        let site = Self.immichSite(of: url)
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
        case .trashed: return .unknown("the photo is in the trash of Immich. Restore the photo in Immich")
        case .refused, nil: return finding
        }
    }

    /// Returns the seconds by which the clock of a server is ahead, if the server refused the signature of a request and its clock
    /// differs by more than 10 minutes. S3 accepts a difference of 15 minutes.
    func clockSkew(of response: URLResponse?) -> Double? {
        guard credential?.s3 != nil, let response = response as? HTTPURLResponse, response.statusCode == 403,
            let date = response.value(forHTTPHeaderField: "Date").flatMap({ HTTPDate.parse($0) })
        else { return nil }
        let skew = date.timeIntervalSince(AppRuntime.shared.now)
        return abs(skew) > 600 ? skew : nil
    }

    private func readBack(_ request: URLRequest) async throws -> UploadFinding { try await read(request).finding }

    private func read(_ request: URLRequest) async throws -> (finding: UploadFinding, response: URLResponse?) {
        do {
            let session = URLSession(configuration: configuration)
            let (file, response) = try await session.download(for: request)
            defer { try? FileManager.default.removeItem(at: file) }
            return (try finding(file, response, request), response)
        } catch let error as URLError where error.code == .dataLengthExceedsMaximum {
            return (.differs, nil)
        } catch let error as URLError {
            return (.unreachable(error.localizedDescription), nil)
        }
    }

    private func finding(_ file: URL, _ response: URLResponse, _ request: URLRequest) throws -> UploadFinding {
        switch (response as? HTTPURLResponse)?.statusCode ?? 0 {
        case 200:
            let found = try FileDigest.sha256(of: file)
            if found.digest == receipt.sha256 { return .same }
            // A web page may come from a captive portal, so the page does not prove that the file on the server differs.
            if response.mimeType?.lowercased() == "text/html" {
                return .unreachable("the server sent a page instead of the file, perhaps because the server requires a login")
            }
            // If the file was uploaded with a form, the server chose the address in the receipt, and it can be the address of
            // any page. Other content at this address does not prove that the file differs.
            return upload.upload?.method == .multipart
                ? .unknown("the content at this address differs from the uploaded file") : .differs
        case 404, 410:
            // If the response comes from another address than the requested one, the response does not prove that the file
            // was removed. The response may come from a captive portal, or the server may have a new address.
            return Self.isAnswer(response, of: request) ? .gone : .unreachable("the server redirected to another address")
        case 401, 403: return .unreachable("the server does not permit reading the file")
        case 405: return .unknown("the server does not support requests that read the file")
        case let status: return .unreachable("the server responded with status \(status)")
        }
    }

    private static func isAnswer(_ response: URLResponse, of request: URLRequest) -> Bool {
        guard let asked = request.url, let answered = response.url else { return true }
        return RedirectRule.origin(of: asked) == RedirectRule.origin(of: answered) && asked.path == answered.path
    }

    /// A configuration with limits for the time and the size of the response, so that every check ends.
    var configuration: URLSessionConfiguration {
        let configuration = URLSessionConfiguration.ephemeral
        // The check must receive the file that is on the server now, so no cache is used.
        (configuration.urlCache, configuration.requestCachePolicy) = (nil, .reloadIgnoringLocalAndRemoteCacheData)
        // Without a cookie storage Foundation creates no folder for cookies.
        configuration.httpCookieStorage = nil
        configuration.timeoutIntervalForResource = 60 + Double(receipt.byteCount) / Self.leastRate
        // The digest was computed from the sent bytes, so the response must not be decoded.
        configuration.keepsCoding = true
        // The limit is at least 1 MiB, so that the page of a captive portal is received even if the photo is small.
        configuration.maximumBodyBytes = max(receipt.byteCount, 1 << 20)
        configuration.authorityFile = (credential?.server ?? upload.upload?.server)?.authorityFile
        return configuration
    }

    /// The slowest permitted rate, in bytes per second.
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
                // A captive portal, or a server that does not report the length of a complete upload, sends no offset.
                guard let offset = answer?.value(forHTTPHeaderField: "Upload-Offset") else {
                    return .unknown("the server does not report the length of the file")
                }
                return offset == "\(receipt.byteCount)" ? .sameLength : .differs
            case 404, 410: return .unknown("the server moved the file after the upload")
            case let status: return .unreachable("the server responded with status \(status)")
            }
        } catch let error as URLError {
            return .unreachable(error.localizedDescription)
        }
    }
}
