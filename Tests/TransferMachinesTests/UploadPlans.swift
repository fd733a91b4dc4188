@testable import TransferMachines

extension UploadPlan {
    /// Creates a plan with a new order.
    init(
        kind: UploadKind, collectionURL: String, fileName: String, byteCount: Int64, token: String, headers: [HeaderField] = [],
        contentType: String? = nil, field: String? = nil, sha256: String? = nil
    ) {
        var order = UploadOrder(method: kind, fileName: fileName, byteCount: byteCount, token: token)
        (order.contentType, order.field) = (contentType, field)
        self.init(order: order, collectionURL: collectionURL, headers: headers, sha256: sha256)
    }
}
