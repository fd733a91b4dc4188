import BackgroundTransfer
import Foundation

/// Reads resume data that an app stored anywhere. No data may cause a crash, and only data that Stormy created is accepted.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzResume(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let data = Data(bytes: start, count: count)
    ResumeDataFuzzing.read(data)
    // The second data has the right digest, so that the code reads the payload.
    ResumeDataFuzzing.read(ResumeDataFuzzing.sealed(data))
    return 0
}
