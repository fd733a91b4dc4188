import BackgroundLedger
import BackgroundRuntime
import Foundation
import FoundationNetworking
import TransferMachines

/// The result of a request that removes an uploaded file from its server.
package enum UploadRemoval: Equatable, Sendable {
    case removed
    /// The protocol has no such request, for the reason in the associated value.
    case impossible(String)
    /// The server did not remove the file, for the reason in the associated value.
    case failed(String)
}

/// Removes uploaded files from their servers.
package enum UploadedFile {
    /// Removes the file of a completed upload from its server.
    ///
    /// - Parameter credential: The credentials of the server. The credentials are sent only if the address in the receipt belongs
    ///   to the server of the upload.
    /// - Throws: an error if the ledger cannot be read.
    package static func remove(_ id: Int64, credential: BackgroundTransfers.Credential?) async throws -> UploadRemoval {
        guard let check = try UploadCheck(id, credential) else { return .impossible("the file was not uploaded") }
        return await check.remove()
    }
}

extension UploadCheck {
    /// Sends the request that removes the file.
    func remove() async -> UploadRemoval {
        guard let url = URL(string: receipt.url), let method = upload.upload?.method else {
            return .impossible("the address of the file is not recorded")
        }
        let opener = opener(of: url)
        var request = request(url, opener, "DELETE")
        switch method.laterQuestion(asked: upload.url, stored: receipt.url) {
        case .file where !method.canRemoveFiles: return .impossible("the protocol has no request that removes a file")
        case .nothing(let reason): return .impossible(reason)
        case .file, .signedFile: break
        case .offset: request.setValue("1.0.0", forHTTPHeaderField: "Tus-Resumable")
        case .immichAsset:
            let assets = Self.immichSite(of: url).appendingPathComponent("api/assets")
            request = self.request(assets, opener, "DELETE")
            request.setValue("application/json", forHTTPHeaderField: "Content-Type")
            request.httpBody = try? JSONEncoder().encode(ImmichRemoval(ids: [url.lastPathComponent]))
        }
        do {
            var (_, response) = try await URLSession(configuration: configuration).data(for: request)
            if let skew = clockSkew(of: response) {
                let again = self.request(url, opener, "DELETE", clockSkew: skew)
                (_, response) = try await URLSession(configuration: configuration).data(for: again)
            }
            switch (response as? HTTPURLResponse)?.statusCode ?? 0 {
            case 200, 202, 204: return .removed
            case let status: return .failed("the server responded with status \(status)")
            }
        } catch {
            return .failed(error.localizedDescription)
        }
    }

    /// The body of Immich's request that removes assets. With `force`, the assets are not moved to the trash.
    private struct ImmichRemoval: Encodable {
        let ids: [String]
        var force = true
    }
}
