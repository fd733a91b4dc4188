import BackgroundCommands
import BackgroundTransfer

extension UploadVerb {
    /// Prints the reasons why servers stored photos in another way than requested. Each reason is printed once, with its photos.
    func printRemarks(of ended: [BackgroundTransferStatus]) {
        let remarked = ended.filter { $0.receipt?.remark != nil }
        for (remark, uploads) in Dictionary(grouping: remarked, by: { $0.receipt?.remark ?? "" }).sorted(by: { $0.key < $1.key })
        {
            guard let first = uploads.first, let receipt = first.receipt else { continue }
            let others = uploads.count > 1 ? ", and \(uploads.count - 1) more" : ""
            Output.note("\(first.file ?? "transfer \(first.id)"): stored as \(receipt.url)\(others): \(remark)")
        }
    }
}
