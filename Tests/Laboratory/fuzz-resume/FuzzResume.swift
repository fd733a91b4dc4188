import BackgroundTransfer
import Foundation

/// Reads resume data that an app stored in any place. No data may cause a crash, and only data that Stormy made is accepted.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzResume(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let data = Data(bytes: start, count: count)
    ResumeDataFuzzing.read(data)
    // The second data has the right digest, so that the payload is read.
    ResumeDataFuzzing.read(ResumeDataFuzzing.sealed(data))
    return 0
}
