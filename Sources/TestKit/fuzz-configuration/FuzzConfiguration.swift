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
    case 0:
        // An hour of July 2026.
        let (request, now) = (WeatherRequest(url: ""), Date(timeIntervalSince1970: 1_783_000_000))
        for provider in WeatherProvider.allCases {
            let answer = try? provider.service().read(rest, status: 200, to: request, now: now)
            if case .forecast(let forecast)? = answer { _ = StormRule().assess(forecast, now: now) }
        }
    case 1: _ = try? OpenMeteo.parseGeocoding(rest)
    default: _ = try? Configuration.parse(text: String(decoding: rest, as: UTF8.self), path: "config.toml")
    }
    return 0
}
