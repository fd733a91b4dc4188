import Foundation
import Stormy

/// Detects the format and the location of a file that a camera, a drone or an attacker wrote. The search must not crash. The
/// result for a location must not depend on the bytes before and after it.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzPhoto(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let photo = Data(UnsafeBufferPointer(start: start, count: count))
    _ = PhotoFormat(firstBytes: photo)
    let isLocated = PhotoLocation.isPresent(in: photo)
    let moved = Data(repeating: 0x20, count: 7) + photo
    precondition(!isLocated || PhotoLocation.isPresent(in: moved), "a place is not found where it was moved to")
    let behind = photo + Data(" exif:GPSLatitude=\"52,31N\"".utf8)
    precondition(PhotoLocation.isPresent(in: behind), "a place is not found behind these bytes")
    return 0
}
