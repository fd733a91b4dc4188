import Foundation
import Stormy

/// What a camera, a drone or a stranger may have written: whether a file is a photo, and whether it says where it was taken. Nothing may
/// trap, and a place that is there is found whatever stands before it or behind it.
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
