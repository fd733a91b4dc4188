import Foundation
import StormyConfiguration
import StormyWeather

/// What people and weather services write: it may be refused, with a place in the text, and must not trap.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzConfiguration(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = UnsafeBufferPointer(start: start, count: count)
    guard let first = bytes.first else { return 0 }
    let rest = Data(bytes.dropFirst())
    switch first % 3 {
    case 0: _ = try? OpenMeteo.parseForecast(rest)
    case 1: _ = try? OpenMeteo.parseGeocoding(rest)
    default: _ = try? Configuration.parse(text: String(decoding: rest, as: UTF8.self), path: "config.toml")
    }
    return 0
}
