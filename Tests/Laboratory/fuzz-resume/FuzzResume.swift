import BackgroundTransfer
import Foundation

/// Resume data comes back from wherever an app kept it: nothing in it may trap, and what is taken is what was given out.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzResume(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let data = Data(bytes: start, count: count)
    ResumeDataFuzzing.read(data)
    // With the right digest, so that the payload is reached.
    ResumeDataFuzzing.read(ResumeDataFuzzing.sealed(data))
    return 0
}
