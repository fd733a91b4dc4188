import BackgroundLedger
import Foundation

/// Rows of a ledger that somebody else wrote into: reading them may fail, and must not trap.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzLedger(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    LedgerFuzzing.read(UnsafeRawBufferPointer(start: start, count: count))
    return 0
}
