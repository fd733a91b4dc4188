import BackgroundLedger
import Foundation

/// Reads rows of a ledger that another program changed. Reading may fail, but must not cause a crash.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzLedger(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    LedgerFuzzing.read(UnsafeRawBufferPointer(start: start, count: count))
    return 0
}
